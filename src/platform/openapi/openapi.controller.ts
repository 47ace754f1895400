import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { OpenApiDocument } from './openapi-document.js';

@Public()
@ApiExcludeController()
@Controller({ version: VERSION_NEUTRAL })
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('openapi.json')
  @Header('Content-Type', 'application/json')
  readJson(): string {
    return this.document.json;
  }
}
