/**
 * Compares openapi.json with the document of the last release. Fails when a client of that release would break, unless
 * openapi.accepted.json has the change with its reason: `--accept <reason>` adds it. Of what may pass, it prints only what this branch
 * has changed.
 */
import { Command, InvalidArgumentError } from 'commander';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { addedOperations, contractChanges, judgeChanges } from './breaking-changes.js';

const at = (name) => new URL(`../${name}`, import.meta.url);
const read = (name) => JSON.parse(readFileSync(at(name), 'utf8'));
const [released, current, accepted] = ['released.json', 'json', 'accepted.json'].map((name) => read(`openapi.${name}`));
const { version: next } = read('package.json');
const { accept: reason } = new Command('check:api')
  .option('--accept <reason>', 'list the breaks that are not listed yet, with this reason', (text) => {
    if (text.trim() === '') throw new InvalidArgumentError('Say why.');
    return text;
  })
  .parse()
  .opts();
const { breaking, widening } = contractChanges(released, current);
if (reason !== undefined) {
  const { refused: changes } = judgeChanges(breaking, accepted);
  if (changes.length > 0) accepted.push({ version: next, reason, changes });
  const filepath = fileURLToPath(at('openapi.accepted.json'));
  writeFileSync(filepath, await format(JSON.stringify(accepted), { ...(await resolveConfig(filepath)), filepath }));
}
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
  process.stderr.write(
    'Undo the change, or deprecate first: CONTRIBUTING.md, "Change the contract". To break them on purpose, list the changes in\n' +
      `openapi.accepted.json, for version ${next}: npm run check:api -- --accept "<reason>"\n`,
  );
}
print('openapi.accepted.json is not right:', faults);
if (refused.length > 0 || faults.length > 0) process.exitCode = 1;
