import { Body, Controller, Get, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiOperation, ApiParam } from '@nestjs/swagger';
import type { Response } from 'express';
import { Config } from '../config.js';
import { RequireScopes } from '../platform/auth/require-scopes.decorator.js';
import { ApiError } from '../platform/errors/api-error.js';
import { INVALID_CURSOR } from '../platform/errors/error-catalogue.js';
import { IdempotencyKey, Idempotent } from '../platform/idempotency/idempotency-key.js';
import { JsonBody } from '../platform/json/json-body.js';
import { parseInt64 } from '../platform/json/int64.js';
import { Deprecated } from '../platform/deprecation/deprecation.decorators.js';
import { LOCATION_HEADER, NEXT_PAGE_HEADER } from '../platform/openapi/response-headers.js';
import { FailsWith, Tag } from '../platform/openapi/openapi.decorators.js';
import { linkNextPage } from '../platform/paging/page.interceptor.js';
import { EXAMPLE_ID, ListPetsQuery, NewPet, Pet, Pets, writePet, writePets } from './pet.dto.js';
import { PET_NOT_FOUND, PetsService } from './pets.service.js';
import { PassesRequestToLog } from '../platform/server/requests/request-context.js';

@Tag('Pets', 'The catalogue of animals.')
@PassesRequestToLog()
@Controller('pets')
export class PetsController {
  private readonly address: string;

  constructor(
    private readonly pets: PetsService,
    config: Config,
  ) {
    this.address = `${config.publicBaseUrl}/pets`;
  }

  @Get()
  @RequireScopes('pets:read')
  @ApiOperation({ summary: 'List animals', description: 'One page of the catalogue, by ascending id.' })
  @ApiOkResponse({ type: Pets, description: 'The page of animals.', headers: NEXT_PAGE_HEADER })
  @FailsWith(INVALID_CURSOR)
  async listPets(@Query() query: ListPetsQuery, @Res({ passthrough: true }) response: Response): Promise<JsonBody> {
    const { items, nextCursor } = await this.pets.list(query);
    if (nextCursor !== undefined) {
      const status = query.status === undefined ? '' : `&status=${query.status}`;
      linkNextPage(response, `${this.address}?limit=${query.limit}${status}&cursor=${nextCursor}`);
    }
    return JsonBody.shared(items, writePets);
  }

  @Post()
  @RequireScopes('pets:write')
  @ApiOperation({ summary: 'Add an animal', description: 'Adds an animal to the catalogue and assigns its id.' })
  @ApiBody({ type: NewPet, description: 'The animal to add.' })
  @ApiCreatedResponse({ type: Pet, description: 'The created animal.', headers: LOCATION_HEADER })
  async createPet(
    @Body() newPet: NewPet,
    @Idempotent() key: IdempotencyKey | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<JsonBody> {
    const pet = await this.pets.create(newPet, key);
    response.setHeader('Location', `${this.address}/${pet.id}`);
    return new JsonBody(writePet(pet));
  }

  @Get(':petId')
  @RequireScopes('pets:read')
  @Deprecated({
    since: '2026-11-20T00:00:00Z',
    sunset: '2030-12-05T00:00:00Z',
    successor: '/pets',
    replacement: 'Use GET /pets with a status filter instead.',
  })
  @ApiOperation({ summary: 'Get an animal', description: 'One animal by its identifier.' })
  @ApiParam({
    name: 'petId',
    description: 'Identifier of the animal.',
    schema: { type: 'integer', format: 'int64', example: EXAMPLE_ID },
  })
  @ApiOkResponse({ type: Pet, description: 'The animal.' })
  @FailsWith(PET_NOT_FOUND)
  async getPet(@Param('petId') petId: string): Promise<JsonBody> {
    const id = parseInt64(petId);
    // undefined: not a valid int64, so no such animal.
    const pet = id === undefined ? undefined : await this.pets.find(id);
    if (!pet) {
      throw new ApiError(PET_NOT_FOUND);
    }
    return new JsonBody(writePet(pet));
  }
}
