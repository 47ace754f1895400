import { Body, Controller, Delete, Get, HttpCode, Post, Query, Res } from '@nestjs/common';
import { ApiBody, ApiCreatedResponse, ApiNoContentResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import type { Response } from 'express';
import {
  Config,
  FailsWith,
  type IdempotencyKey,
  Idempotent,
  LOCATION_HEADER,
  type Page,
  Paged,
  PathId,
  RequireScopes,
  Tag,
} from '#platform';
import { ID, ListSampleThingsQuery, NewSampleThing, SampleThing } from './sample-thing.dto.js';
import { SAMPLE_THING_NOT_FOUND, SampleThingsService } from './sample-things.service.js';

@Tag('Sample things', 'The sample things of this service.')
@Controller('sample-things')
export class SampleThingsController {
  constructor(
    private readonly sampleThings: SampleThingsService,
    private readonly config: Config,
  ) {}

  @Get()
  @RequireScopes('sample-things:read')
  @ApiOperation({ summary: 'List sample things', description: 'One page of the sample things, by ascending id.' })
  @Paged(SampleThing, 'The page of sample things.')
  listSampleThings(@Query() query: ListSampleThingsQuery): Promise<Page<SampleThing>> {
    return this.sampleThings.list(query);
  }

  @Post()
  @RequireScopes('sample-things:write')
  @ApiOperation({ summary: 'Add one sample thing', description: 'Adds one sample thing, and assigns its id.' })
  @ApiBody({ type: NewSampleThing, description: 'The sample thing to add.' })
  @ApiCreatedResponse({ type: SampleThing, description: 'The added sample thing.', headers: LOCATION_HEADER })
  async createSampleThing(
    @Body() newSampleThing: NewSampleThing,
    @Idempotent() key: IdempotencyKey | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<SampleThing> {
    const created = await this.sampleThings.create(newSampleThing, key);
    response.setHeader('Location', `${this.config.publicBaseUrl}/sample-things/${created.id}`);
    return created;
  }

  @Get(':sampleThingId')
  @RequireScopes('sample-things:read')
  @ApiOperation({ summary: 'Get one sample thing', description: 'One sample thing by its identifier.' })
  @ApiOkResponse({ type: SampleThing, description: 'The sample thing.' })
  @FailsWith(SAMPLE_THING_NOT_FOUND)
  getSampleThing(@PathId('sampleThingId', SAMPLE_THING_NOT_FOUND, ID) id: bigint): Promise<SampleThing> {
    return this.sampleThings.get(id);
  }

  @Delete(':sampleThingId')
  @HttpCode(204)
  @RequireScopes('sample-things:write')
  @ApiOperation({ summary: 'Delete one sample thing', description: 'Deletes one sample thing by its identifier.' })
  @ApiNoContentResponse({ description: 'The sample thing is deleted.' })
  @FailsWith(SAMPLE_THING_NOT_FOUND)
  deleteSampleThing(@PathId('sampleThingId', SAMPLE_THING_NOT_FOUND, ID) id: bigint): Promise<void> {
    return this.sampleThings.delete(id);
  }
}
