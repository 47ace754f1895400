import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { OpenApiDocument } from './openapi-document.js';

/** The OpenAPI document of the application. */
@Module({ imports: [DiscoveryModule], providers: [OpenApiDocument], exports: [OpenApiDocument] })
export class OpenApiModule {}
