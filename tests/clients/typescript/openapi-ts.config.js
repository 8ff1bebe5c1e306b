// Settings of @hey-api/openapi-ts. Node.js needs the names of imported files with their endings.
/** @type {import("@hey-api/openapi-ts").UserConfig} */
export default { input: "openapi.json", output: { path: "sdk", importFileExtension: ".js" } };
