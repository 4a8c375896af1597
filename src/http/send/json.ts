export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'
