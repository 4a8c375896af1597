/** The validator of JSON Schemas that the SDK comes with. A module of its own, since it is half of what the catalog needs of the SDK. */
export { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
