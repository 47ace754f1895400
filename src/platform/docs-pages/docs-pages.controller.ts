import { Controller, Get, Param, Redirect, Req, Res, VERSION_NEUTRAL } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Config } from '../../config.js';
import { Application } from '../application.js';
import { Public } from '../auth/public.decorator.js';
import { ApiError } from '../errors/api-error.js';
import { errorCatalogue, ROUTE_NOT_FOUND } from '../errors/error-catalogue.js';
import { entityTag, matchesEntityTag } from '../json/entity-tag.js';
import { docsAssets } from './docs-assets.js';
import { deprecationsPage, errorsPage, guidePage, swaggerUiPage } from './page-templates.js';
import { type Guide, renderGuide } from '../docs-guide/guide.js';
import { OpenApiDocument } from '../openapi/openapi-document.js';
import { PassesRequestToLog } from '../server/requests/served-request.js';

const HTML = 'text/html; charset=utf-8';

/** The OpenAPI document and the pages below /docs. Public. The pages load no file from another server. */
@Public()
@ApiExcludeController()
@PassesRequestToLog()
@Controller({ version: VERSION_NEUTRAL })
export class DocsPagesController {
  private readonly pageHeaders: Readonly<Record<string, string>>;
  private guide: Guide | undefined;

  constructor(
    private readonly document: OpenApiDocument,
    private readonly adapterHost: HttpAdapterHost,
    private readonly application: Application,
    private readonly config: Config,
  ) {
    this.pageHeaders = {
      'Content-Security-Policy': [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        // "Try it out" in the reference sends requests to this server.
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ].join('; '),
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Opener-Policy': 'same-origin',
    };
  }

  @Get()
  @Redirect('docs', 302)
  redirectToDocs(): void {}

  @Get('openapi.json')
  readOpenApiJson(@Req() request: Request, @Res() response: Response): void {
    this.send(request, response, 'application/json', this.document.json);
  }

  @Get('openapi.yaml')
  readOpenApiYaml(@Req() request: Request, @Res() response: Response): void {
    // Media type: RFC 9512.
    this.send(request, response, 'application/yaml', this.document.yaml);
  }

  @Get('docs')
  showSwaggerUi(@Req() request: Request, @Res() response: Response): void {
    this.send(request, response, HTML, swaggerUiPage(this.application.info.title, docsAssets().version));
  }

  @Get('docs/guide')
  showGuide(@Req() request: Request, @Res() response: Response): void {
    this.guide ??= renderGuide(this.application.readGuide(), this.config.publicBaseUrl);
    this.send(request, response, HTML, guidePage(this.application.info.title, docsAssets().version, this.guide));
  }

  @Get('docs/deprecations')
  showDeprecations(@Req() request: Request, @Res() response: Response): void {
    const { title } = this.application.info;
    this.send(request, response, HTML, deprecationsPage(title, docsAssets().version, this.document.deprecations));
  }

  @Get('docs/errors')
  showErrors(@Req() request: Request, @Res() response: Response): void {
    this.send(request, response, HTML, errorsPage(this.application.info.title, docsAssets().version, errorCatalogue()));
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

  private send(request: Request, response: Response, contentType: string, body: string): void {
    const tag = entityTag(body);
    response.setHeader('ETag', tag);
    response.setHeader('Cache-Control', 'no-cache');
    if (contentType === HTML) {
      Object.entries(this.pageHeaders).forEach(([name, value]) => response.setHeader(name, value));
    }
    const { httpAdapter } = this.adapterHost;
    const ifNoneMatch = request.headers['if-none-match'];
    if (ifNoneMatch !== undefined && matchesEntityTag(ifNoneMatch, tag)) {
      httpAdapter.reply(response, undefined, 304);
    } else {
      response.setHeader('Content-Type', contentType);
      httpAdapter.reply(response, body, 200);
    }
  }
}
