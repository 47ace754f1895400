import { Module } from '@nestjs/common';
import { OpenApiDocument } from '#openapi';
import { DocsPagesController } from './docs-pages.controller.js';

/** Serves the pages at /docs and the OpenAPI document at /openapi.json and /openapi.yaml. */
@Module({ providers: [OpenApiDocument], controllers: [DocsPagesController] })
export class DocsPagesModule {}
