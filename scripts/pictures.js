/**
 * Makes the README's picture of the documentation page from a service that it starts. Needs a build, and Chromium
 * (`CHROMIUM_PATH`, else `/usr/bin/chromium`).
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const picture = join(root, 'docs/pictures/closed.png');
const API_KEY = 'a-key-for-the-pictures';
const DESKTOP = { width: 1100, height: 760 };

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

try {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP localhost:3000 127.0.0.1:${await listening()}`],
  });
  const page = await browser.newPage({ viewport: DESKTOP });
  await page.goto('http://localhost:3000/docs');
  await page.locator('.opblock').last().waitFor();
  await page.mouse.move(0, 0);
  await page.screenshot({ path: picture, animations: 'disabled' });
  await browser.close();
} finally {
  service.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
