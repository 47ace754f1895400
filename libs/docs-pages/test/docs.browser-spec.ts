import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { ServiceProcess } from '../../../test/support/service-process.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const API_KEY = 'a-key-for-the-browser-test';
const NEW_PET = '{"name":"Rex \\"the {dog}\\"","categoryId":9223372036854775807}';

let directory: string;
let service: ServiceProcess;
let origin: string;
let browser: Browser;
let page: Page;
/** Problems that no page may cause: messages on the console, failed requests, requests to other servers. */
let complaints: string[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-browser-'));
  service = new ServiceProcess({ DATA_DIR: directory, BOOTSTRAP_API_KEY: API_KEY }, directory);
  origin = (await service.origin()).replace('localhost', '127.0.0.1');
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await service?.kill();
  await rm(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  complaints = [];
  page = await browser.newPage();
  page.setDefaultTimeout(30_000);
  page.on('console', (message) => {
    // Chromium also reports every error response of the API.
    const isOfApi = new URL(message.location().url || origin).pathname.startsWith('/v1/');
    if (!isOfApi) complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    const { hostname } = new URL(request.url());
    const isHere = ['127.0.0.1', 'localhost', ''].includes(hostname);
    if (!isHere) complaints.push(`elsewhere: ${request.url()}`);
  });
});

afterEach(async () => {
  await page.close();
  // The console also shows violations of the content security policy.
  expect(complaints).toEqual([]);
});

async function openDocs(server = origin): Promise<void> {
  await page.goto(`${server}/docs`);
  await page.locator('.opblock').first().waitFor();
}

async function authorize(): Promise<void> {
  await page.locator('.btn.authorize').click();
  const dialog = page.locator('.modal-ux');
  await dialog.locator('input').fill(API_KEY);
  await dialog.getByRole('button', { name: 'Authorize' }).click();
  await dialog.locator('.btn-done').click();
}

async function openOperation(operationId: string): Promise<Locator> {
  const operation = page.locator(`#operations-Pets-${operationId}`);
  const button = operation.locator('.opblock-summary-control');
  if ((await button.getAttribute('aria-expanded')) === 'false') await button.click();
  await operation.locator('.try-out__btn').waitFor();
  return operation;
}

/** Executes an operation, and returns its response as the page shows it. */
async function tryOut(
  operationId: string,
  fill?: (operation: Locator) => Promise<unknown>,
): Promise<{ status: string; body: string; fields: string; curl: string }> {
  const operation = await openOperation(operationId);
  const button = operation.getByRole('button', { name: 'Try it out' });
  if (await button.isVisible()) await button.click();
  await fill?.(operation);
  const answered = page.waitForResponse((response) => response.url().includes('/v1/'));
  await operation.locator('.execute').click();
  await answered;
  await operation.locator('.loading-container').waitFor({ state: 'detached' });
  const live = operation.locator('.live-responses-table');
  return {
    status: (await live.locator('tbody .response-col_status').innerText()).trim(),
    body: await live.locator('.highlight-code pre').innerText(),
    fields: (await live.locator('.headerline').allInnerTexts()).map((line) => line.trim()).join('\n'),
    curl: await operation.locator('pre.curl').innerText(),
  };
}

const enterPetId = (id: string) => (operation: Locator) => operation.getByRole('textbox', { name: 'petId' }).fill(id);

/** Violations of WCAG and of good practice that axe rates serious or critical. */
async function violations(): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`);
}

/** The number of colours that the elements of a selector have. */
function coloursOf(selector: string, kind = 'color'): Promise<number> {
  const colours = `[...document.querySelectorAll('${selector}')].map((each) => getComputedStyle(each).${kind})`;
  return page.evaluate<number>(`new Set(${colours}).size`);
}

/** Waits for a condition. Playwright's waitForFunction would need `eval`, which the content security policy forbids. */
async function until(condition: string): Promise<void> {
  const look = `const look = () => (${condition} ? resolve() : setTimeout(look, 20)); look();`;
  await page.evaluate(`new Promise((resolve) => { ${look} })`);
}

describe('/docs', () => {
  test('shows "Loading …" before Swagger UI has arrived', async () => {
    await page.route('**/swagger-ui*', () => undefined);
    await page.goto(`${origin}/docs`, { waitUntil: 'commit' });
    await until(`performance.getEntriesByName('first-contentful-paint').length === 1`);
    await page.unrouteAll();
    await openDocs();
  });

  test('is less than 400 KB once its files are compressed well, and all of them are requested at once', async () => {
    const entries = `performance.getEntriesByType('resource').filter(({ name }) => !name.endsWith('.svg'))`;
    let bytes = Infinity;
    for (const start = Date.now(); bytes >= 400_000 && Date.now() < start + 30_000;) {
      const cdp = await page.context().newCDPSession(page);
      await cdp.send('Network.clearBrowserCache');
      await openDocs();
      bytes = await page.evaluate<number>(`${entries}.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`);
    }
    expect(bytes).toBeLessThan(400_000);
    const initiators = await page.evaluate<string[]>(`${entries}.map(({ initiatorType }) => initiatorType)`);
    expect(initiators.sort()).toEqual(['link', 'link', 'link', 'script', 'script']);
  });

  test('shows the operations in the layout of Swagger UI, and no tag without operations', async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await openDocs();
    expect(await page.locator('.opblock').count()).toBe(3);
    expect(await page.locator('.opblock-tag:visible').count()).toBe(1);
    expect(await coloursOf('.opblock-summary-method', 'backgroundColor')).toBe(3);
    expect((await page.locator('.opblock').first().boundingBox())?.y).toBeLessThan(760);
    for (const operationId of ['listPets', 'createPet', 'getPet']) {
      expect((await (await openOperation(operationId)).boundingBox())?.height).toBeLessThan(2.5 * 800);
    }
  });

  test('executes every operation, and loses no digit of an int64', async () => {
    await openDocs();
    await authorize();

    const created = await tryOut('createPet', (operation) => operation.getByLabel('Request body').fill(NEW_PET));
    expect(created.status).toBe('201');
    const id = /"id": ([0-9]+),/.exec(created.body)?.[1] as string;
    expect(created.body).toContain('{\n  "id": ');
    expect(created.body).toContain('"name": "Rex \\"the {dog}\\"",\n  "categoryId": 9223372036854775807,\n');
    expect(created.curl).toContain(`-d '${NEW_PET}'`);
    expect(await coloursOf('.live-responses-table .highlight-code span')).toBeGreaterThan(2);
    expect(await coloursOf('.responses-table', 'outlineStyle')).toBe(2);

    const listed = await tryOut('listPets', (operation) => operation.getByLabel('status').selectOption('available'));
    expect(listed.status).toBe('200');
    expect(listed.body).toContain('"categoryId": 9223372036854775807,');
    expect(listed.curl).toContain(`'${origin}/v1/pets?limit=20&status=available'`);

    const found = await tryOut('getPet', enterPetId(id));
    expect([found.status, found.body]).toEqual(['200', created.body]);
    const largest = await tryOut('getPet', enterPetId('9223372036854775807'));
    expect(largest.status).toContain('404');
    expect(largest.curl).toContain(`'${origin}/v1/pets/9223372036854775807'`);
  });

  test('shows header fields as they were sent', async () => {
    await openDocs();
    await authorize();
    const { fields } = await tryOut('getPet', enterPetId('0'));
    expect(fields).toContain('\nsunset: Thu, 05 Dec 2030 00:00:00 GMT\n');
    expect(fields).toMatch(/^link: <.*>; rel="successor-version", <.*>; rel="deprecation"; type="text\/html"$/m);
  });

  test('says that a request without a complete response may have been carried out', async () => {
    await openDocs();
    const operation = await openOperation('createPet');
    await operation.getByRole('button', { name: 'Try it out' }).click();
    await page.route('**/v1/pets', (route) => route.abort());
    await operation.locator('.execute').click();
    await operation.getByText('repeat it with the same Idempotency-Key').waitFor();
  });

  test('sends requests to the host name of the page, and keeps the key for the page only', async () => {
    const otherName = origin.replace('127.0.0.1', 'localhost');
    await openDocs(otherName);
    expect(await page.getByLabel('Server').inputValue()).toBe(`${otherName}/v1`);
    await authorize();
    const { status, curl } = await tryOut('listPets');
    expect([status, curl.includes(`'${otherName}/v1/pets?limit=20'`)]).toEqual(['200', true]);
    await page.reload();
    expect((await tryOut('listPets')).status).toContain('401');
  });

  test.each([
    ['OpenAPI document', 'openapi.json', ['servers', 0, 'url']],
    ['Postman collection', 'postman.json', ['variable', 0, 'value']],
  ])('downloads the %s with the address of the page as its server', async (name, file, place) => {
    const otherName = origin.replace('127.0.0.1', 'localhost');
    await openDocs(otherName);
    const waiting = page.waitForEvent('download');
    await page.getByRole('link', { name }).click();
    const download = await waiting;
    expect(download.suggestedFilename()).toBe(file);
    const saved = JSON.parse(readFileSync(await download.path(), 'utf8')) as object;
    const server = place.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], saved);
    expect(server).toBe(`${otherName}/v1`);
  });

  test('opens or shows the operation that the fragment of the address names, and prints all of them', async () => {
    await page.goto(`${origin}/docs#operations-Pets-getPet`);
    await until(`document.getElementById('operations-Pets-getPet')?.getBoundingClientRect().y < 400`);
    await page.goto('about:blank');
    await page.goto(`${origin}/docs#/Pets/createPet`);
    await page.locator('#operations-Pets-createPet .try-out__btn').waitFor();
    expect(await page.locator('.opblock-body').count()).toBe(1);
    await page.pdf();
    expect(await page.locator('.opblock-body').count()).toBe(3);
  });
});

describe.each(['/docs', '/docs/guide', '/docs/deprecations'])('%s', (path) => {
  test.each(['light', 'dark'] as const)('has no serious accessibility violation in the %s theme', async (theme) => {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto(origin + path);
    if (path === '/docs') {
      await page.locator('.btn.authorize').click();
      expect(await violations()).toEqual([]);
      await page.getByRole('button', { name: 'Close' }).first().click();
      await tryOut('createPet');
      await tryOut('listPets');
      await tryOut('getPet', enterPetId('1'));
      while ((await page.locator('.response-open').count()) > 0) await page.locator('.response-open').first().click();
    }
    for (const width of [1440, 768, 390]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await violations()).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    }
    const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    expect(background).toBe(theme === 'dark' ? 'rgb(28, 32, 34)' : 'rgb(255, 255, 255)');
  });
});

test('/docs/guide has its contents below its title, and copies samples', async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${origin}/docs/guide`);
  expect(await page.locator('h1 + nav a').count()).toBeGreaterThan(5);
  const sample = page.locator('pre').first();
  const code = await sample.innerText();
  await sample.getByRole('button', { name: 'Copy' }).click();
  await sample.getByText('Copied').waitFor();
  expect(`Copy\n${await page.evaluate<string>('navigator.clipboard.readText()')}`).toBe(code);
});

test('the samples of /docs/guide are tabs without JavaScript', async () => {
  const tab = await browser.newPage({ javaScriptEnabled: false });
  await tab.goto(`${origin}/docs/guide`);
  const sample = tab.locator('.samples').last();
  expect(await sample.locator('pre:visible').getAttribute('aria-label')).toBe('JavaScript');
  await sample.getByLabel('Python').and(tab.locator('input')).check();
  expect(await sample.locator('pre:visible').getAttribute('aria-label')).toBe('Python');
  await tab.close();
});
