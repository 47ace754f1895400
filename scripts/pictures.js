/**
 * Makes the pictures of the documentation page in `docs/pictures` from a service that it starts. Needs a build, and Chromium
 * (`CHROMIUM_PATH`, else `/usr/bin/chromium`).
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const pictures = join(root, 'docs/pictures');
const API_KEY = 'a-key-for-the-pictures';
const DESKTOP = { width: 1100, height: 760 };
const PHONE = { width: 390, height: 760 };

const directory = mkdtempSync(join(tmpdir(), 'petstore-pictures-'));
const service = spawn(process.execPath, [join(root, 'dist/bundle/main.js')], {
  cwd: directory,
  env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: '0', DATA_DIR: directory, BOOTSTRAP_API_KEY: API_KEY },
  stdio: ['ignore', 'ignore', 'pipe'],
});

/** The port of the service, once it listens. */
async function listening() {
  let log = '';
  for await (const chunk of service.stderr.setEncoding('utf8')) {
    log += chunk;
    const port = /listens on http:\/\/localhost:(\d+)/.exec(log)?.[1];
    if (port !== undefined) return port;
  }
  throw new Error(`The service does not start:\n${log}`);
}

async function openDocs(browser, options) {
  const page = await browser.newPage(options);
  await page.goto('http://localhost:3000/docs');
  await page.locator('.opblock').last().waitFor();
  return page;
}

async function openCreatePet(page) {
  const operation = page.locator('#operations-Pets-createPet');
  await operation.locator('.opblock-summary-control').click();
  await operation.locator('.try-out__btn').waitFor();
  await operation.evaluate((element) => element.scrollIntoView());
  return operation;
}

async function takeAnswer(page) {
  await page.locator('.btn.authorize').click();
  await page.locator('.modal-ux input').fill(API_KEY);
  await page.locator('.modal-ux').getByRole('button', { name: 'Authorize' }).click();
  await page.locator('.modal-ux .btn-done').click();
  const operation = await openCreatePet(page);
  await operation.locator('.try-out__btn').click();
  await operation.locator('.body-param__text').fill('{ "name": "Rex", "categoryId": 9223372036854775807 }');
  await operation.locator('.execute').click();
  await operation.locator('.live-responses-table .highlight-code').waitFor();
  await operation.locator('.execute').evaluate((element) => element.scrollIntoView());
}

try {
  mkdirSync(pictures, { recursive: true });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP localhost:3000 127.0.0.1:${await listening()}`],
  });
  const take = async (name, options, prepare = () => {}) => {
    const page = await openDocs(browser, options);
    await prepare(page);
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(pictures, `${name}.png`), animations: 'disabled' });
    await page.close();
  };
  await take('closed', { viewport: DESKTOP });
  await take('operation', { viewport: DESKTOP }, openCreatePet);
  await take('response', { viewport: DESKTOP }, takeAnswer);
  await take('dark', { viewport: DESKTOP, colorScheme: 'dark' }, takeAnswer);
  await take('phone', { viewport: PHONE }, openCreatePet);
  await browser.close();
} finally {
  service.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
