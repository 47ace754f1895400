import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const API_KEY = 'a-key-for-the-browser-test';
const NEW_PET = '{"name":"Rex \\"the {dog}\\"","categoryId":9223372036854775807}';

let directory: string;
let service: ChildProcess;
let origin: string;
let browser: BrowserContext;
let page: Page;
/** Problems that no page may cause: messages on the console, failed requests, requests to other servers. */
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
  page.setDefaultTimeout(30_000);
  page.on('console', (message) => {
    // Chromium also reports every error answer of the API.
    const isOfApi = new URL(message.location().url || origin).pathname.startsWith('/v1/');
    if (!isOfApi) complaints.push(`${message.type()}: ${message.text()}`);
  });
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
  // The console also shows violations of the content security policy.
  expect(complaints).toEqual([]);
});

/** Starts the built service on an embedded database in a directory, and waits until it prints its address. */
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
  await page.locator('.operation').first().waitFor();
}

const keyField = (): Locator => page.getByLabel('Your API key');
const keyState = (): Locator => page.locator('#api-key-state');

async function useKey(key = API_KEY): Promise<void> {
  await keyField().fill(key);
  await page.getByRole('button', { name: 'Use', exact: true }).click();
  await page.locator('#api-key-state:is(.success, .failure)').waitFor();
}

async function openOperation(operationId: string): Promise<Locator> {
  const operation = page.locator(`#operations-Pets-${operationId}`);
  const button = operation.locator('h3 button');
  if ((await button.getAttribute('aria-expanded')) === 'false') await button.click();
  await operation.locator('.execute').waitFor();
  return operation;
}

/** Executes an operation, and returns its answer as the page shows it. */
async function tryOut(
  operationId: string,
  fill?: (operation: Locator) => Promise<unknown>,
): Promise<{ status: string; body: string; fields: string; curl: string }> {
  const operation = await openOperation(operationId);
  await fill?.(operation);
  await operation.locator('.execute').click();
  const status = (await operation.locator('.answer .status strong').innerText()).trim();
  const text = async (title: string): Promise<string> =>
    (await operation.locator(`.answer pre[aria-label="${title}"]`).allInnerTexts()).join('');
  return {
    status,
    body: await text('Body'),
    fields: await text('Header fields'),
    curl: await text('The request, with curl'),
  };
}

/** Violations of WCAG and of good practice that axe rates serious or critical. */
async function violations(): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`);
}

describe('/docs', () => {
  test('shows the three operations, and the deprecated one with a line through it', async () => {
    await openDocs();
    const operations = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.operation')].map(({ id }) => id)",
    );
    expect(operations).toEqual(['operations-Pets-listPets', 'operations-Pets-createPet', 'operations-Pets-getPet']);
    const decorations = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.operation .path')].map((path) => getComputedStyle(path).textDecorationLine)",
    );
    expect(decorations).toEqual(['none', 'none', 'line-through']);
  });

  test('executes every operation, and loses no digit of an int64', async () => {
    await openDocs();
    await useKey();
    await page.reload();
    await page.locator('#api-key-state.success').waitFor();

    const created = await tryOut('createPet', (operation) => operation.getByLabel('Body').fill(NEW_PET));
    expect(created.status).toBe('201 Created');
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
    expect(created.curl).toContain(`--data-raw '${NEW_PET}'`);
    expect(created.curl).toContain('-H "Authorization: Bearer $API_KEY"');
    expect(created.curl).not.toContain(API_KEY);

    const listed = await tryOut('listPets', (operation) => operation.getByLabel('status').selectOption('available'));
    expect(listed.status).toBe('200 OK');
    expect(listed.body).toContain('"categoryId": 9223372036854775807,');
    expect(listed.curl).toContain(`'${origin}/v1/pets?status=available'`);

    const found = await tryOut('getPet', (operation) => operation.getByLabel('petId').fill(id));
    expect([found.status, found.body]).toEqual(['200 OK', shown]);
    const largest = await tryOut('getPet', (operation) => operation.getByLabel('petId').fill('9223372036854775807'));
    expect(largest.status).toBe('404 Not Found');
    expect(largest.curl).toContain(`'${origin}/v1/pets/9223372036854775807'`);
  });

  test('shows header fields as they were sent', async () => {
    await openDocs();
    await useKey();
    const { fields } = await tryOut('getPet', (operation) => operation.getByLabel('petId').fill('0'));
    const answer = await fetch(`${origin}/v1/pets/0`, { headers: { authorization: `Bearer ${API_KEY}` } });
    const changing = /^(x-request-id|date|ratelimit|connection|keep-alive|content-length):/;
    const stable = (lines: string[]): string[] => lines.filter((line) => !changing.test(line)).sort();
    const sent = stable([...answer.headers].map(([name, value]) => `${name}: ${value}`));
    expect(sent).toContain('sunset: Thu, 05 Dec 2030 00:00:00 GMT');
    expect(sent.find((line) => line.startsWith('link:'))).toContain('>; rel="successor-version", <');
    expect(stable(fields.split('\n'))).toEqual(sent);
  });

  test('removes the previous answer when a new request is sent or a value is missing', async () => {
    await openDocs();
    await useKey();
    const operation = await openOperation('getPet');
    const answers = operation.locator('.answer .status');
    expect((await tryOut('getPet', () => operation.getByLabel('petId').fill('0'))).status).toBe('404 Not Found');

    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/v1/pets/00', async (route) => {
      await held;
      await route.continue();
    });
    await operation.getByLabel('petId').fill('00');
    await operation.locator('.execute').click();
    await operation.getByText('Sending').waitFor();
    expect(await answers.count()).toBe(0);
    release();
    await answers.waitFor();

    await operation.getByLabel('petId').fill('');
    await operation.locator('.execute').click();
    await answers.waitFor({ state: 'detached' });
  });

  test('keeps the focus on Execute, and shows the answer right below it', async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await openDocs();
    await useKey();
    const operation = await openOperation('listPets');
    await operation.locator('.execute').focus();
    await page.keyboard.press('Enter');
    await operation.locator('.answer .status').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Execute');
    const button = await operation.locator('.execute').boundingBox();
    const answer = await operation.locator('.answer .status').boundingBox();
    const below = (answer?.y ?? 0) - (button?.y ?? 0) - (button?.height ?? 0);
    expect(below).toBeGreaterThan(0);
    expect(below).toBeLessThan(40);
  });

  test('shows an opened operation on at most two screens, without regular expressions and empty sections', async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await openDocs();
    for (const operationId of ['listPets', 'createPet', 'getPet']) {
      const box = await (await openOperation(operationId)).boundingBox();
      expect(box?.height).toBeLessThan(2 * 900);
    }
    expect(await page.locator('body').innerText()).not.toMatch(/\^\(|\[!#-~\]|Store orders/);
    expect(await page.locator('main').count()).toBe(1);

    // Answers that all operations share are described once.
    for (const name of ['X-Request-Id', 'RateLimit-Policy', 'rate_limited', 'missing_api_key']) {
      expect(await page.getByText(name, { exact: true }).count()).toBe(1);
    }
    expect(await page.getByRole('link', { name: 'what every operation may answer' }).count()).toBe(3);
  });

  test('sends requests to the host name of the page, and says so', async () => {
    const otherName = origin.replace('127.0.0.1', 'localhost');
    await openDocs(otherName);
    expect(await page.locator('main').innerText()).toContain(`Requests from this page go to ${otherName}/v1`);
    await useKey();
    const { status, curl } = await tryOut('listPets');
    expect([status, curl.includes(`'${otherName}/v1/pets'`)]).toEqual(['200 OK', true]);
  });

  test('opens the operation that the fragment of the address names', async () => {
    await page.goto(`${origin}/docs#/Pets/createPet`);
    await page.locator('#operations-Pets-createPet .execute').waitFor();
    expect(await page.locator('.operation .execute').count()).toBe(1);
  });
});

describe('the API key', () => {
  const kept = (storage: string): Promise<boolean> =>
    page.evaluate(`Object.values(${storage}).some((value) => value.includes('${API_KEY}'))`);

  test('is shown as accepted only when the service accepts it', async () => {
    await openDocs();
    expect(await keyState().innerText()).toContain('No key is set');
    await keyField().fill('some text');
    await page.getByRole('button', { name: 'Use', exact: true }).click();
    await page.locator('#api-key-state.failure').waitFor();
    expect(await keyState().innerText()).toContain('refuses this key');
    await useKey();
    expect(await keyState().innerText()).toContain('accepts this key');
  });

  test('is masked, in a wide field, until it is shown on demand', async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await openDocs();
    expect(await keyField().getAttribute('type')).toBe('password');
    expect((await keyField().boundingBox())?.width).toBeGreaterThan(500);
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await keyField().getAttribute('type')).toBe('text');
  });

  test('is kept for the session only, or permanently on demand, and forgotten on demand', async () => {
    await openDocs();
    await useKey();
    expect([await kept('localStorage'), await kept('sessionStorage')]).toEqual([false, true]);
    await page.getByLabel('Keep it in this browser').check();
    await useKey();
    expect([await kept('localStorage'), await kept('sessionStorage')]).toEqual([true, false]);
    await page.getByRole('button', { name: 'Forget' }).click();
    expect([await kept('localStorage'), await kept('sessionStorage')]).toEqual([false, false]);
    expect(await keyField().inputValue()).toBe('');
    expect(await keyState().innerText()).toContain('No key is set');
  });
});

const PAGES = ['/docs', '/docs/guide', '/docs/deprecations', '/docs/errors'];

describe.each(PAGES)('%s', (path) => {
  test.each(['light', 'dark'] as const)(
    'has no serious accessibility violation in the %s theme',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      await page.goto(origin + path);
      await page.locator('h1').waitFor();
      if (path === '/docs') {
        await useKey();
        for (const operationId of ['createPet', 'listPets', 'getPet']) await openOperation(operationId);
        await tryOut('listPets');
      }
      for (const width of [1440, 768, 390]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await violations()).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
        expect(await page.evaluate('matchMedia("(prefers-color-scheme: dark)").matches')).toBe(colorScheme === 'dark');
      }
      const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(colorScheme === 'dark' ? 'rgb(28, 32, 34)' : 'rgb(255, 255, 255)');
    },
  );
});

test('/docs/deprecations#getPet shows the date of removal and the replacement', async () => {
  await page.goto(`${origin}/docs/deprecations#getPet`);
  const section = page.locator('section:target');
  expect(await section.isVisible()).toBe(true);
  const text = await section.innerText();
  expect(text).toContain('GET /pets/{petId}');
  expect(text).toContain('5 December 2030');
  expect(text).toContain('Use GET /pets with a status filter');
});

describe('the samples of /docs/guide', () => {
  const shown = (): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll('.samples pre')]
      .filter((sample) => sample.offsetHeight > 0).map((sample) => sample.getAttribute('aria-label'))`);

  test('are shown in the chosen language, also after a reload', async () => {
    await page.goto(`${origin}/docs/guide`);
    const before = await shown();
    expect(new Set(before)).toEqual(new Set(['curl', 'JavaScript']));
    await page.getByLabel('Python', { exact: true }).and(page.locator('input')).last().check();
    expect(await shown()).toEqual(before.map(() => 'Python'));
    await page.reload();
    expect(await shown()).toEqual(before.map(() => 'Python'));
    await page.evaluate("localStorage.removeItem('sample-language')");
  });

  test('are tabs also without JavaScript', async () => {
    const plain = await (browser.browser() as Browser).newContext({ javaScriptEnabled: false });
    try {
      const tab = await plain.newPage();
      await tab.goto(`${origin}/docs/guide`);
      const sample = tab.locator('.samples').last();
      expect(await sample.locator('pre:visible').getAttribute('aria-label')).toBe('JavaScript');
      await sample.getByLabel('Python').and(tab.locator('input')).check();
      expect(await sample.locator('pre:visible').getAttribute('aria-label')).toBe('Python');
    } finally {
      await plain.close();
    }
  });
});
