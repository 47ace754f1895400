import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/* The platform knows no feature: its code, comments and tests name neither a feature nor its subject. */

const PLATFORM = join(import.meta.dirname, '../../src/platform');
const FEATURE_WORDS = new Set(['pet', 'pets', 'animal', 'animals']);

/** The words of a text. An identifier is split into its words; `petstore` is one word. */
function wordsOf(text: string): string[] {
  return (text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());
}

function featureWordsIn(text: string): string[] {
  return text.split('\n').flatMap((line, index) => {
    const found = wordsOf(line).filter((word) => FEATURE_WORDS.has(word));
    return found.map((word) => `${index + 1}: ${word}`);
  });
}

const files = readdirSync(PLATFORM, { recursive: true, withFileTypes: true })
  // Pages are exempt: the README of the fast paths names the feature whose requests share statements.
  .filter((entry) => entry.isFile() && !entry.name.endsWith('.md'))
  .map((entry) => join(entry.parentPath, entry.name));

test('src/platform names no feature', () => {
  expect(files.length).toBeGreaterThan(50);
  const found = files.flatMap((file) => featureWordsIn(readFileSync(file, 'utf8')).map((word) => `${file}:${word}`));
  expect(found).toEqual([]);
});

test.each([
  ['class PetsService {}', ['1: pets']],
  ['// Ask\n// for an Animal.', ['2: animal']],
  ["'/v1/pets/{petId}'", ['1: pets', '1: pet']],
  ["const PET_STATUSES = 'pets:read'", ['1: pet', '1: pets']],
  ["'petstore:public', 'Petstore-Stability', PipeTransform, competes, carpet", []],
])('in %j the words of features are %j', (text, expected) => {
  expect(featureWordsIn(text)).toEqual(expected);
});
