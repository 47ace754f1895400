import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import {
  Created,
  Deprecated,
  type IdempotencyKey,
  Idempotent,
  NoQuery,
  type Page,
  Paged,
  PathId,
  RequireScopes,
  Tag,
} from '#platform';
import { EXAMPLE_ID, EXAMPLES, ListPetsQuery, NewPet, Pet, Pets } from './pet.dto.js';
import { PET_NOT_FOUND, PetsService } from './pets.service.js';

@Tag('Pets', 'The catalogue of pets.')
@Controller('pets')
export class PetsController {
  constructor(private readonly pets: PetsService) {}

  @Get()
  @RequireScopes('pets:read')
  @ApiOperation({ summary: 'List pets', description: 'One page of the catalogue, by ascending id.' })
  @Paged(Pets, 'The page of pets.')
  listPets(@Query() query: ListPetsQuery): Promise<Page<Pet>> {
    return this.pets.list(query);
  }

  @Post()
  @NoQuery()
  @RequireScopes('pets:write')
  @ApiOperation({ summary: 'Add a pet', description: 'Adds a pet to the catalogue and assigns its id.' })
  @ApiBody({ type: NewPet, description: 'The pet to add.', examples: EXAMPLES })
  @Created(Pet, 'The created pet.')
  createPet(@Body() newPet: NewPet, @Idempotent() key: IdempotencyKey | undefined): Promise<Pet> {
    return this.pets.create(newPet, key);
  }

  @Get(':petId')
  @RequireScopes('pets:read')
  @Deprecated({
    since: '2026-11-20T00:00:00Z',
    sunset: '2030-12-05T00:00:00Z',
    successor: '/pets',
    replacement:
      'Use GET /pets with a status filter instead: follow its pages, which ascend by id, until the id that you look for. ' +
      'A client that created the pet can also keep what createPet returned.',
  })
  @ApiOperation({ summary: 'Get a pet', description: 'One pet by its identifier.' })
  @ApiOkResponse({ type: Pet, description: 'The pet.' })
  getPet(
    @PathId('petId', PET_NOT_FOUND, { description: 'Identifier of the pet.', example: EXAMPLE_ID }) petId: bigint,
  ): Promise<Pet> {
    return this.pets.get(petId);
  }
}
