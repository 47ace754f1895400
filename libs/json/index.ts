export { compareInt64Texts, INT64_MAX, INT64_MIN, int64OfNumeral, isInt64, parseInt64, toInt64 } from './src/int64.js';
export { JSON_LIMITS, type JsonLimits, numeralOf, readJson, readOwnJson } from './src/json-reader.js';
export { countCharacters, entityTag, jsonTextOf, shared } from './src/json-text.js';
export { isDeclared, writeByDeclaration, writeJson } from './src/json-writer.js';
