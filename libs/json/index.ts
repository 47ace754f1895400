export { compareInt64Texts, INT64_MAX, INT64_MIN, isInt64, parseInt64, toInt64 } from './src/int64.js';
export { countCharacters, readJson, readOwnJson } from './src/json-reader.js';
export { entityTag, jsonTextOf, shared } from './src/json-text.js';
export { isDeclared, writeByDeclaration, writeJson } from './src/json-writer.js';
