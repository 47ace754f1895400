import { Module } from '@nestjs/common';
import { DocsPagesController } from './docs-pages.controller.js';

/** Serves the pages at /docs and the OpenAPI document at /openapi.json and /openapi.yaml. */
@Module({ controllers: [DocsPagesController] })
export class DocsPagesModule {}
