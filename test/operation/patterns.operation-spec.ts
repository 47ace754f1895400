import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import.meta.jest.setTimeout(180_000);

/* Each reads `{ patterns, texts }` as JSON, and writes for each pattern the positions of the texts that match. */

const PYTHON = `
import json, re, sys
given = json.load(sys.stdin)
print(json.dumps([[at for at, text in enumerate(given['texts']) if re.search(pattern, text)] for pattern in given['patterns']]))`;

const PERL = `
my $given = JSON::PP->new->utf8->decode(do { local $/; <STDIN> });
my @texts = @{$given->{texts}};
print JSON::PP::encode_json([map { my $pattern = qr/$_/; [grep { $texts[$_] =~ $pattern } 0 .. $#texts] } @{$given->{patterns}}]);`;

const PHP = `
$given = json_decode(stream_get_contents(STDIN));
$matching = fn($pattern) => array_keys(array_filter($given->texts,
  fn($text) => preg_match(chr(1) . $pattern . chr(1) . 'u', $text) === 1));
set_error_handler(fn($number, $text) => throw new ErrorException($text));
echo json_encode(array_map($matching, $given->patterns));`;

const GO = `
package main
import ("encoding/json"; "os"; "regexp")
func main() {
	var given struct{ Patterns, Texts []string }
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil { panic(err) }
	found := [][]int{}
	for _, pattern := range given.Patterns {
		compiled := regexp.MustCompile(pattern)
		matching := []int{}
		for at, text := range given.Texts {
			if compiled.MatchString(text) { matching = append(matching, at) }
		}
		found = append(found, matching)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}`;

const CHARACTERS = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter(
  (character) => !/[\ud800-\udfff]/.test(character),
);
// For Python, Perl and PCRE the end of "\n" is before it, too, so that one stands only between others.
const TEXTS = [...CHARACTERS.filter((character) => character !== '\n'), ...CHARACTERS.map((each) => `a${each}a`)];

function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { pattern } = value as { pattern?: unknown };
  return [...(typeof pattern === 'string' ? [pattern] : []), ...Object.values(value).flatMap(patternsIn)];
}

const document: unknown = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
const PATTERNS = [...new Set(patternsIn(document))];
const EXPECTED = PATTERNS.map((pattern) => {
  const expression = new RegExp(pattern, 'u');
  return TEXTS.flatMap((text, at) => (expression.test(text) ? [at] : []));
});

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'petstore-patterns-'));
  writeFileSync(join(folder, 'main.go'), GO);
});
afterAll(() => rmSync(folder, { recursive: true }));

test('has patterns', () => expect(PATTERNS.length).toBeGreaterThan(5));

test.each([
  ['Python', 'python3', ['-c', PYTHON]],
  ['Perl', 'perl', ['-MJSON::PP', '-e', PERL]],
  ['PHP, by PCRE2', 'php', ['-r', PHP]],
  ['Go, by RE2', 'go', ['run', 'main.go']],
])('has patterns that mean the same in %s', (_, program, args) => {
  const env = { ...process.env, GOCACHE: join(folder, 'cache') };
  const { error, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    env,
    input: JSON.stringify({ patterns: PATTERNS, texts: TEXTS }),
    encoding: 'utf8',
    maxBuffer: 100_000_000,
  });
  expect({ error, stderr }).toEqual({ error: undefined, stderr: '' });
  const found = JSON.parse(stdout) as number[][];
  const differing = PATTERNS.flatMap((pattern, index) => {
    const [own, other] = [new Set(EXPECTED[index]), new Set(found[index])];
    const texts = TEXTS.filter((_, at) => own.has(at) !== other.has(at));
    return texts.length === 0 ? [] : [{ pattern, texts: texts.slice(0, 5) }];
  });
  expect(differing).toEqual([]);
});
