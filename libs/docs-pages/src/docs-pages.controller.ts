import { Controller, Get, Module, Param, Redirect, Req, Res, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { ApiError, ROUTE_NOT_FOUND } from '#errors';
import { entityTag } from '#json';
import { OpenApiDocument, Public } from '#operations';
import { Clock } from '#runtime';
import { Application, Config } from '#settings';
import { deprecationsPage, type Guide, guidePage, swaggerUiPage } from './page-templates.js';

const PAGE_HEADERS: Record<string, string> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // The style sheet of Swagger UI has its icons in data: addresses.
    "img-src 'self' data:",
    // "Try it out" in the reference sends requests to this server.
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** Caches keep the files of the pages for 5 minutes; longer, and a new page could load scripts of the last release. */
const ASSET_HEADERS = { 'Cache-Control': 'public, max-age=300' };

/** Media type: RFC 6713. */
const CLIENT_HEADERS = { 'Content-Type': 'application/gzip' };

const OWN_FILES = fileURLToPath(new URL('browser', import.meta.url));
const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const FILES = [
  ...readdirSync(OWN_FILES).map((file) => join(OWN_FILES, file)),
  ...['swagger-ui-bundle.js', 'swagger-ui.css'].map((file) => join(SWAGGER_UI, file)),
];

/** The files that pages load, by their names. */
const ASSETS = new Map(FILES.map((path) => [basename(path), readFileSync(path)]));

/** The OpenAPI document and the pages below /docs. Public. The pages load no file from another server. */
@Public()
@ApiExcludeController()
@Controller({ version: VERSION_NEUTRAL })
export class DocsPagesController {
  private guide: Guide | undefined;
  private client: Buffer | undefined;

  constructor(
    private readonly document: OpenApiDocument,
    private readonly application: Application,
    private readonly config: Config,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Redirect('docs', 302)
  redirectToDocs(): void {}

  @Get('openapi.json')
  readOpenApiJson(@Res({ passthrough: true }) response: Response): Promise<Buffer> {
    return revalidated(response, this.document.json, { 'Content-Type': 'application/json' });
  }

  @Get('openapi.yaml')
  async readOpenApiYaml(@Res({ passthrough: true }) response: Response): Promise<Buffer> {
    // Media type: RFC 9512.
    return revalidated(response, await this.document.yaml(), { 'Content-Type': 'application/yaml' });
  }

  @Get('docs')
  showSwaggerUi(@Res({ passthrough: true }) response: Response): Promise<Buffer> {
    const { info, readClient } = this.application;
    return revalidated(response, swaggerUiPage(info.title, readClient !== undefined));
  }

  @Get('docs/guide')
  async showGuide(@Res({ passthrough: true }) response: Response): Promise<Buffer> {
    const { renderGuide } = await import('./guide.js');
    const hasClient = this.application.readClient !== undefined;
    this.guide ??= renderGuide(this.application.readGuide(), this.config.publicBaseUrl, hasClient);
    return revalidated(response, guidePage(this.application.info.title, this.guide));
  }

  /** The npm package of the client. `npm install` takes its address. */
  @Get('docs/client.tgz')
  sendClient(@Res({ passthrough: true }) response: Response): Promise<Buffer> {
    this.client ??= this.application.readClient?.();
    if (this.client === undefined) throw new ApiError(ROUTE_NOT_FOUND, 'This service has no client to install.');
    return revalidated(response, this.client, CLIENT_HEADERS);
  }

  @Get('docs/deprecations')
  showDeprecations(@Res({ passthrough: true }) response: Response): Promise<Buffer> {
    const { info } = this.application;
    return revalidated(response, deprecationsPage(info.title, this.document.deprecations, this.clock.now()));
  }

  /**
   * Redirects paths with a trailing slash; those without one match the handlers above. The redirect is relative, so that it
   * also works behind a path prefix.
   */
  @Get(['docs{/}', 'docs/deprecations{/}', 'docs/guide{/}'])
  @Redirect(undefined, 308)
  redirectFromSlash(@Req() { path }: Request): { url: string } {
    return { url: `../${path.split('/').at(-2)}` };
  }

  /** A file that the pages load. */
  @Get('docs/assets/:file')
  sendAsset(@Param('file') file: string, @Res({ passthrough: true }) response: Response): Promise<Buffer> {
    const content = ASSETS.get(file);
    if (content === undefined) throw new ApiError(ROUTE_NOT_FOUND, 'The pages have no file of this name.');
    return revalidated(response.type(file), content, ASSET_HEADERS);
  }
}

@Module({ controllers: [DocsPagesController] })
export class DocsPagesModule {}

const CODINGS = { br: promisify(brotliCompress), gzip: promisify(gzip) };
const quality = (level: number) => ({ params: { [constants.BROTLI_PARAM_QUALITY]: level } });

interface Representations {
  readonly tag: string;
  readonly identity: Buffer;
  br?: Promise<Buffer>;
  gzip?: Promise<Buffer>;
}

/** What was sent of each document, by its content. Bytes: text would be encoded again for each response. */
const representations = new Map<string | Buffer, Representations>();

/**
 * Sets the header fields of a document that browsers keep and revalidate. Returns its content, compressed if the client
 * accepts that, unless it is compressed already. Each document is compressed at its first request.
 */
async function revalidated(
  response: Response,
  content: string | Buffer,
  headers: Record<string, string> = PAGE_HEADERS,
): Promise<Buffer> {
  const known = representations.get(content) ?? { tag: entityTag(content), identity: Buffer.from(content as Buffer) };
  representations.set(content, known);
  const fields = { ETag: known.tag, 'Cache-Control': 'no-cache', ...headers };
  response.setHeaders(new Map(Object.entries(fields)));
  if (headers === CLIENT_HEADERS) return known.identity;
  response.vary('Accept-Encoding');
  const coding = (['br', 'gzip'] as const).find((name) => response.req.acceptsEncodings(name));
  if (coding === undefined) return known.identity;
  response.setHeader('Content-Encoding', coding);
  if (known[coding]) return known[coding];
  // Quality 10 saves another 7 % of Swagger UI's bytes, but takes 1 s of CPU: later responses have it, the first one does not wait.
  const quick = (known[coding] = CODINGS[coding](known.identity, quality(9)));
  if (coding === 'br') {
    void quick.then(async () => (known.br = Promise.resolve(await CODINGS.br(known.identity, quality(10)))));
  }
  return quick;
}
