# Pin by digest for a release: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs ./scripts/
COPY src ./src
ARG REVISION
RUN REVISION=$REVISION npm run build
COPY openapi ./openapi
COPY skills /skills
# The service reads all of it and changes none of it, independent of the modes in the checkout.
RUN chmod -R a+rX,go-w dist openapi /skills

FROM ${NODE_IMAGE}
# git and ssh for sources that are repositories, certificates for git and for TLS to a registry or an issuer.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends git openssh-client ca-certificates \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts \
  && npm cache clean --force \
  && chmod -R a+rX,go-w /app
# The state folder; a volume keeps it between containers. OpenShift runs images as any user of group 0. ssh asks for the
# name of its user.
RUN useradd --uid 10001 --gid 0 --no-create-home --home-dir /state skillserve \
  && mkdir /state && chown 10001:0 /state && chmod 2770 /state
COPY --from=build /app/dist ./dist
COPY --from=build /app/openapi ./openapi
COPY --from=build /skills /skills

ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    SKILLS_DIR=/skills \
    STATE_DIR=/state

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="skillserve" \
      org.opencontainers.image.description="Serves a folder of Agent Skills over HTTP to agents that have no file system of their own." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

USER 10001:0
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "dist/cli/skillserve.cjs", "healthcheck"]
# The arguments of `docker run IMAGE …` are those of skillserve. Without a shell, signals reach node.
ENTRYPOINT ["node", "dist/cli/skillserve.cjs"]
