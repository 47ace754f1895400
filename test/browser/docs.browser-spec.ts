import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';

const API_KEY = 'a-key-for-the-browser-test';
const NEW_PET = '{"name":"Rex \\"the {dog}\\"","categoryId":9223372036854775807}';

let directory: string;
let service: ChildProcess;
let origin: string;
let browser: BrowserContext;
let page: Page;
/** What no page may cause: messages on the console, failed requests, requests to other servers. */
let complaints: string[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-browser-'));
  const { child, listening } = startService(directory);
  service = child;
  origin = await listening;
  browser = await chromium.launchPersistentContext(join(directory, 'profile'), {
    executablePath: process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium',
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}, 120_000);

afterAll(async () => {
  await browser?.close();
  if (service?.exitCode === null) {
    const exited = new Promise((resolve) => service.once('exit', resolve));
    service.kill('SIGTERM');
    await exited;
  }
  await rm(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  complaints = [];
  page = await browser.newPage();
  page.setDefaultTimeout(15_000);
  page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    const isHere = host === new URL(origin).host || host === new URL(origin).host.replace('127.0.0.1', 'localhost');
    if (!isHere && protocol !== 'data:' && protocol !== 'blob:') {
      complaints.push(`elsewhere: ${request.url()}`);
    }
  });
});

afterEach(async () => {
  await page.close();
  // Chromium reports violations of the content security policy on the console too.
  expect(complaints).toEqual([]);
});

/** Starts the built service on an embedded database in a directory, and waits until it tells where it listens. */
function startService(dataDirectory: string): { child: ChildProcess; listening: Promise<string> } {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../dist/src/main.js', import.meta.url))], {
    cwd: dataDirectory,
    env: {
      PATH: process.env['PATH'],
      PORT: '0',
      HOST: '127.0.0.1',
      DATA_DIR: join(dataDirectory, 'data'),
      BOOTSTRAP_API_KEY: API_KEY,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const listening = new Promise<string>((resolve, reject) => {
    let said = '';
    child.once('exit', () => reject(new Error(`The service ended before it listened: ${said}`)));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const port = /listens on http:\/\/[^/]*:([0-9]+)/.exec(said)?.[1];
      if (port !== undefined) resolve(`http://127.0.0.1:${port}`);
    });
  });
  return { child, listening };
}

async function openDocs(server = origin): Promise<void> {
  await page.goto(`${server}/docs`);
  await page.locator('.opblock').first().waitFor();
}

async function authorize(): Promise<void> {
  await page.locator('.auth-wrapper > .authorize').click();
  await page.locator('.auth-container input').fill(API_KEY);
  await page.locator('.auth-container button.authorize').click();
  await page.locator('.btn-done').click();
}

/** Tries an operation out; the text is that of the response as it is shown. */
async function tryOut(
  operationId: string,
  fill?: (operation: Locator) => Promise<void>,
): Promise<{ status: string; body: string }> {
  const operation = page.locator(`#operations-Pets-${operationId}`);
  await operation.locator('.opblock-summary-control').click();
  await fill?.(operation);
  await operation.locator('.execute').click();
  const response = operation.locator('.live-responses-table tbody .response');
  return {
    status: (await response.locator('.response-col_status').innerText()).trim(),
    body: await response.locator('.highlight-code code').first().innerText(),
  };
}

test('/docs shows the three operations, the deprecated one struck', async () => {
  await openDocs();
  const operations = await page.evaluate<string[]>("[...document.querySelectorAll('.opblock')].map(({ id }) => id)");
  expect(operations).toEqual(['operations-Pets-listPets', 'operations-Pets-createPet', 'operations-Pets-getPet']);
  const decorations = await page.evaluate<string[]>(
    "[...document.querySelectorAll('.opblock [data-path]')].map((path) => getComputedStyle(path).textDecorationLine)",
  );
  expect(decorations).toEqual(['none', 'none', 'line-through']);
});

test('every operation can be tried out on the server that shows the page, and no digit is lost', async () => {
  await openDocs();
  expect(await page.locator('.servers select').inputValue()).toBe(`${origin}/v1`);
  await authorize();
  await page.reload();
  await page.locator('.auth-wrapper > .authorize.locked').waitFor();

  const created = await tryOut('createPet', (operation) =>
    operation.locator('textarea.body-param__text').fill(NEW_PET),
  );
  expect(created.status).toBe('201');
  const id = /"id": ([0-9]+),/.exec(created.body)?.[1] as string;
  const shown = [
    '{',
    `  "id": ${id},`,
    '  "name": "Rex \\"the {dog}\\"",',
    '  "categoryId": 9223372036854775807,',
    '  "status": "available"',
    '}',
  ].join('\n');
  expect(created.body).toBe(shown);

  const listed = await tryOut('listPets');
  expect(listed.status).toBe('200');
  expect(listed.body).toContain('"categoryId": 9223372036854775807,');

  const found = await tryOut('getPet', (operation) => operation.getByPlaceholder('petId').fill(id));
  expect(found).toEqual({ status: '200', body: shown });
});

test('requests go to the server by the name by which the page was reached', async () => {
  const otherName = origin.replace('127.0.0.1', 'localhost');
  await openDocs(otherName);
  expect(await page.locator('.servers select').inputValue()).toBe(`${otherName}/v1`);
  await authorize();
  expect((await tryOut('listPets')).status).toBe('200');
});

test.each(['light', 'dark'] as const)('/docs follows a %s colour scheme', async (colorScheme) => {
  await page.emulateMedia({ colorScheme });
  await openDocs();
  expect(await page.locator('html.dark-mode').count()).toBe(colorScheme === 'dark' ? 1 : 0);
});

test.each([1280, 390])('the pages are not wider than a window of %i pixels', async (width) => {
  await page.setViewportSize({ width, height: 800 });
  for (const path of ['/docs', '/docs/deprecations', '/docs/errors']) {
    await page.goto(origin + path);
    await page.locator('h1, .opblock').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
  }
});

test('/docs/deprecations#getPet tells until when, and what to use instead', async () => {
  await page.goto(`${origin}/docs/deprecations#getPet`);
  const section = page.locator('section:target');
  expect(await section.isVisible()).toBe(true);
  const text = await section.innerText();
  expect(text).toContain('GET /pets/{petId}');
  expect(text).toContain('5 December 2030');
  expect(text).toContain('Use GET /pets with a status filter');
});
