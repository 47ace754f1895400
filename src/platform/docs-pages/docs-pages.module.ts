import { Module } from '@nestjs/common';
import { OpenApiModule } from '../openapi/openapi.module.js';
import { DocsPagesController } from './docs-pages.controller.js';

/** Serves the pages at /docs and the OpenAPI document at /openapi.json and /openapi.yaml. */
@Module({ imports: [OpenApiModule], controllers: [DocsPagesController] })
export class DocsPagesModule {}
