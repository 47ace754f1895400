export { compareInt64Texts, INT64_MAX, INT64_MIN, isInt64 } from './src/int64.js';
export { int64Of, int64OfNumeral, parseInt64, toInt64 } from './src/int64.js';
export { hasOwnNumerals, numeralOf, readJson, readOwnJson } from './src/json-reader.js';
export { countCharacters, JSON_LIMITS, type JsonLimits } from './src/json-scan.js';
export { declareJson, entityTag, findMembersBy, hasToJson } from './src/json-writer.js';
export { jsonOf, jsonTextOf, shared, writeJson } from './src/json-writer.js';
