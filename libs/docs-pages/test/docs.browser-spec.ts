import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { ServiceProcess } from '../../../test/support/service-process.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LAYOUT_FAULTS = readFileSync(new URL('layout-faults.js', import.meta.url), 'utf8');
/** A host name whose pages browsers take for insecure, as they do on any http address but this machine's. */
const INSECURE_HOST = 'docs.test';
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
    args: ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
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
    const { pathname, hostname } = new URL(message.location().url || origin);
    // Chromium also reports every error response of the API, and on an insecure page that it ignores a header field.
    if (!pathname.startsWith('/v1/') && hostname !== INSECURE_HOST)
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    const { hostname } = new URL(request.url());
    const isHere = ['127.0.0.1', 'localhost', INSECURE_HOST, ''].includes(hostname);
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

async function authorize(value = API_KEY): Promise<void> {
  await page.locator('.btn.authorize').click();
  const dialog = page.locator('.modal-ux');
  await dialog.locator('input').fill(value);
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

  test('is less than 400 KB as Brotli and 510 KB as gzip, and all of its files are requested at once', async () => {
    const entries = `performance.getEntriesByType('resource').filter(({ name }) => !name.endsWith('.svg'))`;
    let bytes = Infinity;
    for (const start = Date.now(); bytes >= 400_000 && Date.now() < start + 30_000;) {
      const cdp = await page.context().newCDPSession(page);
      await cdp.send('Network.clearBrowserCache');
      await openDocs();
      bytes = await page.evaluate<number>(`${entries}.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`);
    }
    expect(bytes).toBeLessThan(400_000);
    const names = await page.evaluate<string[]>(`${entries}.map(({ name }) => name)`);
    const sizes = names.map(async (name) => {
      const response = await page.request.get(name, { headers: { 'Accept-Encoding': 'gzip' } });
      return Number(response.headers()['content-length']);
    });
    expect((await Promise.all(sizes)).reduce((sum, size) => sum + size)).toBeLessThan(510_000);
    const initiators = await page.evaluate<string[]>(`${entries}.map(({ initiatorType }) => initiatorType)`);
    expect(initiators.sort()).toEqual(['link', 'link', 'link', 'script', 'script']);
  });

  test('shows the operations in the layout of Swagger UI, with their limits, and prints whole rows of errors', async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await openDocs();
    expect(await page.locator('.opblock').count()).toBe(3);
    // No tag without operations.
    expect(await page.locator('.opblock-tag:visible').count()).toBe(1);
    expect(await coloursOf('.opblock-summary-method', 'backgroundColor')).toBe(3);
    expect((await page.locator('.opblock').first().boundingBox())?.y).toBeLessThan(760);
    for (const operationId of ['listPets', 'createPet', 'getPet']) {
      expect((await (await openOperation(operationId)).boundingBox())?.height).toBeLessThan(2.5 * 800);
    }
    const limit = page.locator('#operations-Pets-listPets [data-param-name=limit]').first();
    expect(await limit.innerText()).toMatch(/Default value : \d+[^]*minimum: 1[^]*maximum: 100/);
    await page.getByText('array<Pet>', { exact: true }).waitFor();
    await page.emulateMedia({ media: 'print' });
    const cut = `[...document.querySelectorAll('.response-open')].filter((row) => row.scrollWidth > row.clientWidth).length`;
    expect(await page.evaluate(cut)).toBe(0);
  });

  test('executes every operation, takes a key with "Bearer" before it, and loses no digit of an int64', async () => {
    await openDocs();
    await authorize(`Bearer ${API_KEY} `);

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
    expect(largest.curl).toContain(`'Authorization: Bearer ${API_KEY}'`);
    expect(largest.fields).toContain('\nsunset: Thu, 05 Dec 2030 00:00:00 GMT\n');
    expect(largest.fields).toMatch(
      /^link: <.*>; rel="successor-version", <.*>; rel="deprecation"; type="text\/html"$/m,
    );

    // A request without a complete response may have been carried out.
    await page.route('**/v1/pets', (route) => route.abort());
    const operation = page.locator('#operations-Pets-createPet');
    await operation.locator('.execute').click();
    await operation.getByText('repeat it with the same Idempotency-Key').waitFor();
  });

  test('sends requests to the host name of the page, has it in the OpenAPI document, and keeps the key for the page only', async () => {
    const otherName = origin.replace('127.0.0.1', 'localhost');
    await openDocs(otherName);
    const waiting = page.waitForEvent('download');
    await page.getByRole('link', { name: 'OpenAPI document' }).click();
    const download = await waiting;
    expect(download.suggestedFilename()).toBe('openapi.json');
    const saved = JSON.parse(readFileSync(await download.path(), 'utf8')) as { servers: { url: string }[] };
    expect(saved.servers[0]?.url).toBe(`${otherName}/v1`);
    expect(await page.getByLabel('Server').inputValue()).toBe(`${otherName}/v1`);
    await authorize();
    const { status, curl } = await tryOut('listPets');
    expect([status, curl.includes(`'${otherName}/v1/pets?limit=20'`)]).toEqual(['200', true]);
    await page.reload();
    expect((await tryOut('listPets')).status).toContain('401');
  });

  test('opens or shows the operation that the fragment of the address names, and prints all of them, code dark on light and not cut', async () => {
    await page.goto(`${origin}/docs#operations-Pets-getPet`);
    await until(`document.getElementById('operations-Pets-getPet')?.getBoundingClientRect().y < 400`);
    await page.goto('about:blank');
    await page.goto(`${origin}/docs#/Pets/createPet`);
    await page.locator('#operations-Pets-createPet .try-out__btn').waitFor();
    expect(await page.locator('.opblock-body').count()).toBe(1);
    await page.pdf();
    expect(await page.locator('.opblock-body').count()).toBe(3);
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    expect(await coloursOf('pre.microlight, pre.microlight *')).toBe(1);
    const looks = await page.evaluate<string[]>(`[...document.querySelectorAll('pre.microlight')].map((code) => {
      const { color, backgroundColor, maxHeight } = getComputedStyle(code);
      return [color, backgroundColor, maxHeight].join();
    })`);
    expect(new Set(looks)).toEqual(new Set(['rgb(0, 0, 0),rgba(0, 0, 0, 0),none']));
  });
});

describe('/docs: trouble', () => {
  afterEach(() => {
    // The console reports what the test made fail.
    complaints = complaints.filter((complaint) => !/Failed to load resource|preloaded/.test(complaint));
  });

  const DOCUMENT = '**/openapi.json';
  test.each([
    [DOCUMENT, { status: 503, body: '{}' }, 'openapi.json did not arrive: the response was 503.'],
    [DOCUMENT, undefined, 'openapi.json did not arrive: the connection to the service failed.'],
    [DOCUMENT, { contentType: 'text/html', body: '<p>Log in' }, 'What arrived is not openapi.json'],
    ['**/swagger-ui-bundle.js', undefined, 'swagger-ui-bundle.js was blocked'],
  ])('says what is missing, and what to do: %s is %j', async (file, response, cause) => {
    await page.route(file, (route) => (response ? route.fulfill(response) : route.abort()));
    await page.goto(`${origin}/docs`);
    await page.getByText(cause).waitFor();
    expect(await page.getByText('Reload the page').isVisible()).toBe(true);
    expect(await page.getByText('Loading').count()).toBe(0);
  });

  test('says after a while that nothing appears, even if its own script was blocked', async () => {
    await page.route('**/reference.js', (route) => route.abort());
    await page.goto(`${origin}/docs`);
    const advice = page.getByText('Reload the page.');
    expect(await advice.isVisible()).toBe(false);
    await page.evaluate('document.getAnimations().forEach((animation) => animation.finish())');
    expect(await advice.isVisible()).toBe(true);
    await page.unrouteAll();
    await openDocs();
    await page.evaluate('document.getAnimations().forEach((animation) => animation.finish())');
    expect(await advice.isVisible()).toBe(false);
  });
});

const OPEN = `[...document.querySelectorAll('.opblock:has([aria-expanded=true])')].map(({ id }) => id.split('-').at(-1))`;

test('/docs: back and forward open and close operations, and a reload keeps them', async () => {
  await openDocs();
  await openOperation('listPets');
  await openOperation('getPet');
  await page.locator('#operations-Pets-listPets .opblock-summary-control').click();
  expect([await page.evaluate(OPEN), page.url()]).toEqual([['getPet'], `${origin}/docs#/`]);
  for (const [step, opened] of [
    ['back', ['listPets', 'getPet']],
    ['back', ['listPets']],
    ['back', []],
    ['forward', ['listPets']],
    ['forward', ['listPets', 'getPet']],
  ] as const) {
    await page.evaluate(`history.${step}()`);
    await until(`${OPEN}.join() === '${opened.join()}'`);
  }
  await page.pdf();
  expect(page.url()).toBe(`${origin}/docs#/Pets/getPet`);
  await page.reload();
  await until(`${OPEN}.join() === 'listPets,getPet'`);
  await page.evaluate(`location.hash = '#/Pets/createPet'`);
  await until(`${OPEN}.join() === 'createPet'`);
  await page.evaluate(`location.hash = '#/%'`);
  await until(`${OPEN}.length === 0`);
});

test('/docs moves nothing for readers who want less motion', async () => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await openDocs();
  await openOperation('createPet');
  await page.locator('.btn.authorize').click();
  const moving = await page.evaluate<string[]>(`[...document.querySelectorAll('main *')]
    .filter((each) => each.checkVisibility())
    .filter((each) => [null, '::before', '::after'].some((pseudo) => {
      const { animationName, transitionDuration } = getComputedStyle(each, pseudo);
      return animationName !== 'none' || !/^0s(, 0s)*$/.test(transitionDuration);
    }))
    .map(({ outerHTML }) => outerHTML.slice(0, 100))`);
  expect(moving).toEqual([]);
});

describe.each(['/docs', '/docs/guide', '/docs/deprecations'])('%s', (path) => {
  test.each(['light', 'dark'] as const)(
    'is readable and usable on every screen, in the %s theme',
    async (theme) => {
      await page.emulateMedia({ colorScheme: theme });
      await page.goto(origin + path);
      if (path === '/docs') {
        await page.locator('.btn.authorize').click();
        expect(await violations()).toEqual([]);
        expect(await page.evaluate(LAYOUT_FAULTS)).toEqual([]);
        await page.getByRole('button', { name: 'Close' }).first().click();
        await tryOut('createPet', (operation) => operation.getByLabel('Request body').fill(NEW_PET));
        await tryOut('listPets');
        await tryOut('getPet', enterPetId('1'));
        while ((await page.locator('.response-open').count()) > 0) await page.locator('.response-open').first().click();
      }
      for (const width of [1280, 768, 390, 320]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await page.evaluate(LAYOUT_FAULTS)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
        // axe takes seconds. The layout changes once, at 768 px.
        if (width === 1280 || width === 320) expect(await violations()).toEqual([]);
      }
      const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(theme === 'dark' ? 'rgb(28, 32, 34)' : 'rgb(255, 255, 255)');
    },
    120_000,
  );
});

test('/docs/guide has its contents below its title, copies samples, and prints all of them, dark on light', async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${origin}/docs/guide`);
  expect(await page.locator('h1 + nav a').count()).toBeGreaterThan(5);
  const sample = page.locator('pre').first();
  await sample.getByRole('button', { name: 'Copy' }).click();
  await sample.getByText('Copied').waitFor();
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(await sample.locator('code').innerText());
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  expect(await page.locator('pre:visible').count()).toBe(await page.locator('pre').count());
  expect(await page.locator('button:visible, input:visible').count()).toBe(0);
  expect(await page.evaluate(LAYOUT_FAULTS)).toEqual([]);
  const colours = `['body', '.page pre'].map((each) => getComputedStyle(document.querySelector(each)).backgroundColor)`;
  expect(await page.evaluate(colours)).toEqual(['rgb(255, 255, 255)', 'rgb(245, 247, 246)']);
});

test.each([
  ['the browser forbids it', '127.0.0.1', 'The browser does not allow this page to copy.'],
  ['the page has not come by https', INSECURE_HOST, 'Browsers copy only from https.'],
])('/docs/guide selects a sample that it cannot copy, and says so: %s', async (_case, host, cause) => {
  const cdp = await page.context().newCDPSession(page);
  const { browserContextId } = (await cdp.send('Target.getTargetInfo')).targetInfo;
  const denied = { permission: { name: 'clipboard-write' }, setting: 'denied', browserContextId } as const;
  await (await browser.newBrowserCDPSession()).send('Browser.setPermission', denied);
  await page.goto(`${origin.replace('127.0.0.1', host)}/docs/guide`);
  const sample = page.locator('pre').first();
  await sample.getByRole('button', { name: 'Copy' }).click();
  await sample.getByText(`${cause} The sample is selected`).waitFor();
  expect(await page.evaluate('getSelection().toString()')).toBe(await sample.locator('code').innerText());
});

test('without JavaScript /docs says that it needs it, and the samples of /docs/guide are tabs', async () => {
  const tab = await browser.newPage({ javaScriptEnabled: false });
  await tab.goto(`${origin}/docs`);
  expect((await tab.locator('main').innerText()).trim()).toMatch(
    /^Download: .*\n\s*This page needs JavaScript\..*the guide shows how/s,
  );
  await tab.goto(`${origin}/docs/guide`);
  const sample = tab.locator('.samples').last();
  expect(await sample.locator('pre:visible').getAttribute('aria-label')).toBe('JavaScript');
  await sample.getByLabel('Python').and(tab.locator('input')).check();
  expect(await sample.locator('pre:visible').getAttribute('aria-label')).toBe('Python');
  await tab.close();
});
