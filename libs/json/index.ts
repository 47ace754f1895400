export { compareInt64Texts, INT64_MAX, INT64_MIN, isInt64 } from './src/int64.js';
export { int64Of, int64OfNumeral, parseInt64, toInt64 } from './src/int64.js';
export { readJson, readOwnJson } from './src/json-reader.js';
export { JSON_LIMITS, type JsonLimits } from './src/json-scan.js';
export { countCharacters, entityTag, jsonTextOf, shared } from './src/json-text.js';
export { DECLARED, isDeclared, writeJson } from './src/json-writer.js';
export { hasOwnNumerals, numeralOf } from './src/numerals.js';
