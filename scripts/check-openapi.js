/**
 * Compares openapi.json with the document of the last release. Fails when a client of that release would break, unless
 * openapi.accepted.json has the change with its reason. Of what may pass, it prints only what this branch has changed.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { addedOperations, contractChanges, judgeChanges } from './breaking-changes.js';

const [released, current, accepted] = ['openapi.released.json', 'openapi.json', 'openapi.accepted.json'].map((name) =>
  JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')),
);
const { breaking, widening } = contractChanges(released, current);
const { refused, faults } = judgeChanges(breaking, accepted);
const { version } = released.info;
// The document where this branch left main; that of the release without Git.
const show = 'git show "$(git merge-base HEAD main 2>/dev/null || echo HEAD)":openapi.json';
const git = spawnSync('sh', ['-c', show], { cwd: import.meta.dirname, encoding: 'utf8' });
const before = git.status === 0 ? JSON.parse(git.stdout) : released;
const stood = contractChanges(released, before).widening;

function print(heading, lines) {
  if (lines.length > 0) process.stderr.write(`${heading}\n${lines.map((line) => `- ${line}\n`).join('')}\n`);
}

print(
  `Responses have other limits than in the released version ${version}. Name them in CHANGELOG.md:`,
  widening.filter((line) => !stood.includes(line)),
);
print('New operations:', addedOperations(before, current));
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
