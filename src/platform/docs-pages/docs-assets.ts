import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Asset {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** The files that the pages load. The version is part of their URLs; it changes when any file changes. */
export interface Assets {
  readonly version: string;
  readonly files: ReadonlyMap<string, Asset>;
}

const CONTENT_TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' };

let loaded: Assets | undefined;

/** Reads the files at the first call, because most processes never show a page. */
export function docsAssets(): Assets {
  return (loaded ??= loadAssets());
}

function loadAssets(): Assets {
  const own = fileURLToPath(new URL('browser', import.meta.url));
  const swaggerUi = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const paths = [
    join(swaggerUi, 'swagger-ui-bundle.js'),
    join(swaggerUi, 'swagger-ui.css'),
    ...readdirSync(own)
      .sort()
      .map((name) => join(own, name)),
  ];
  const hash = createHash('sha256');
  const files = new Map<string, Asset>();
  for (const path of paths) {
    const bytes = readFileSync(path);
    const extension = path.slice(path.lastIndexOf('.') + 1) as keyof typeof CONTENT_TYPES;
    files.set(path.slice(dirname(path).length + 1), { contentType: CONTENT_TYPES[extension], bytes });
    hash.update(bytes);
  }
  return { version: hash.digest('hex').slice(0, 16), files };
}
