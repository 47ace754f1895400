export { CLASS_RULES, rulesOf } from './src/class-rules.internals.js';
export { DOCUMENTED_MEMBERS } from './src/documented-members.internals.js';
export { compareInt64Texts, INT64_MAX, INT64_MIN, isInt64 } from './src/int64.js';
export { int64Of, int64OfNumeral, parseInt64, toInt64 } from './src/int64.js';
export { hasOwnNumerals, numeralOf, readJson, readOwnJson } from './src/json-reader.js';
export { countCharacters, JSON_LIMITS, type JsonLimits } from './src/json-scan.js';
export { DECLARED, declaredMembers, entityTag, explained, jsonTextOf, shared, writeJson } from './src/json-writer.js';
