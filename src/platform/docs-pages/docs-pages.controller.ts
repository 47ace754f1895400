import { Controller, Get, Param, Redirect, Req, Res, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Config } from '../../config.js';
import { Application } from '../application.js';
import { Public } from '../auth/public.decorator.js';
import { ApiError } from '../errors/api-error.js';
import { errorCatalogue, ROUTE_NOT_FOUND } from '../errors/error-catalogue.js';
import { entityTag } from '../json/entity-tag.js';
import { docsAssets } from './docs-assets.js';
import { deprecationsPage, errorsPage, guidePage, swaggerUiPage } from './page-templates.js';
import { type Guide, renderGuide } from './guide.js';
import { OpenApiDocument } from '../openapi/openapi-document.js';
import { PassesRequestToLog } from '../server/requests/served-request.js';

const PAGE_HEADERS = {
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

/** The OpenAPI document and the pages below /docs. Public. The pages load no file from another server. */
@Public()
@ApiExcludeController()
@PassesRequestToLog()
@Controller({ version: VERSION_NEUTRAL })
export class DocsPagesController {
  private guide: Guide | undefined;

  constructor(
    private readonly document: OpenApiDocument,
    private readonly application: Application,
    private readonly config: Config,
  ) {}

  @Get()
  @Redirect('docs', 302)
  redirectToDocs(): void {}

  @Get('openapi.json')
  readOpenApiJson(@Res({ passthrough: true }) response: Response): string {
    return revalidated(response, this.document.json, { 'Content-Type': 'application/json' });
  }

  @Get('openapi.yaml')
  readOpenApiYaml(@Res({ passthrough: true }) response: Response): string {
    // Media type: RFC 9512.
    return revalidated(response, this.document.yaml, { 'Content-Type': 'application/yaml' });
  }

  @Get('docs')
  showSwaggerUi(@Res({ passthrough: true }) response: Response): string {
    return revalidated(response, swaggerUiPage(this.application.info.title, docsAssets().version));
  }

  @Get('docs/guide')
  showGuide(@Res({ passthrough: true }) response: Response): string {
    this.guide ??= renderGuide(this.application.readGuide(), this.config.publicBaseUrl);
    return revalidated(response, guidePage(this.application.info.title, docsAssets().version, this.guide));
  }

  @Get('docs/deprecations')
  showDeprecations(@Res({ passthrough: true }) response: Response): string {
    const { title } = this.application.info;
    return revalidated(response, deprecationsPage(title, docsAssets().version, this.document.deprecations));
  }

  @Get('docs/errors')
  showErrors(@Res({ passthrough: true }) response: Response): string {
    return revalidated(response, errorsPage(this.application.info.title, docsAssets().version, errorCatalogue()));
  }

  /**
   * Redirects paths with a trailing slash; those without one match the handlers above. The redirect is relative, so that it
   * also works behind a path prefix.
   */
  @Get(['docs{/}', 'docs/deprecations{/}', 'docs/errors{/}', 'docs/guide{/}'])
  @Redirect(undefined, 308)
  redirectFromSlash(@Req() { path }: Request): { url: string } {
    return { url: `../${path.split('/').at(-2)}` };
  }

  /** A file that the pages load. Browsers may cache it for a year, because its URL changes with its content. */
  @Get('docs/assets/:version/:file')
  readAsset(
    @Param('version') version: string,
    @Param('file') file: string,
    @Res({ passthrough: true }) response: Response,
  ): Buffer {
    const assets = docsAssets();
    const asset = assets.files.get(file);
    if (!asset || version !== assets.version) {
      throw new ApiError(ROUTE_NOT_FOUND, 'The page that refers to this file is outdated; reload it.');
    }
    response.setHeader('Content-Type', asset.contentType);
    response.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
    return asset.bytes;
  }
}

/** Sets the header fields of a document that browsers keep and revalidate. Returns its text. */
function revalidated(response: Response, text: string, headers: Record<string, string> = PAGE_HEADERS): string {
  response.setHeaders(new Map(Object.entries({ ETag: entityTag(text), 'Cache-Control': 'no-cache', ...headers })));
  return text;
}
