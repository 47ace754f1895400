/**
 * Compares openapi.json with the document of the last release. Fails when a client of that release would break, unless
 * openapi.accepted.json has the change with its reason.
 */
import { readFileSync } from 'node:fs';
import { contractChanges, judgeChanges } from './breaking-changes.js';

const [released, current, accepted] = ['openapi.released.json', 'openapi.json', 'openapi.accepted.json'].map((name) =>
  JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')),
);
const { breaking, widening } = contractChanges(released, current);
const { refused, faults } = judgeChanges(breaking, accepted);
const { version } = released.info;

function print(heading, lines) {
  if (lines.length > 0) process.stderr.write(`${heading}\n${lines.map((line) => `- ${line}\n`).join('')}\n`);
}

print(`Responses have other limits than in the released version ${version}. Name them in CHANGELOG.md:`, widening);
print(`openapi.json breaks clients of the released version ${version}:`, refused);
if (refused.length > 0) {
  const entry = JSON.stringify({ version: '', reason: '', changes: refused }, null, 2);
  process.stderr.write(
    'Undo the change, or deprecate first: CONTRIBUTING.md, "Change the contract". To break them on purpose, add this entry\n' +
      `to the list of openapi.accepted.json, with the version of the release that has it, and the reason:\n${entry}\n`,
  );
}
print('openapi.accepted.json is not right:', faults);
if (refused.length > 0 || faults.length > 0) process.exitCode = 1;
