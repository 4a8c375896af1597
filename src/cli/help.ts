/** What `--help` prints. */
export const HELP = `skillserve serves folders of Agent Skills over HTTP.

Usage: skillserve [serve] [DIR...] [flags]

Flags beat the environment, the environment beats defaults.

  flag               environment          default    meaning
  DIR...             SKILLS_DIR           ./skills   folders of skills, the earlier wins; the variable
                                                     joins them with the platform's path delimiter;
                                                     a folder named "serve" is ./serve
  --personal DIR     SKILLS_PERSONAL_DIR  none       a folder that loses to all of those
  --host HOST        HOST                 127.0.0.1  name or address to listen on
  --port PORT        PORT                 8080       0 to 65535, 0 takes any free port
  --log-level LEVEL  LOG_LEVEL            info       trace, debug, info, warn, error, fatal or silent
                     ALLOWED_HOSTS        loopback   host names to answer to, joined by commas; without
                                                     it any, unless HOST is a loopback address
                     ALLOWED_ORIGINS      loopback   web pages that may use /mcp, joined by commas; without
                                                     it none, unless HOST is a loopback address
                     WATCH_POLLING        false      true where the system sends no change events
  -h, --help                                         prints this
  -v, --version                                      prints the version
`
