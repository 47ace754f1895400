import { Body, Controller, Delete, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiNoContentResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { Created, type IdempotencyKey, Idempotent, type Page, Paged, PathId, RequireScopes, Tag } from '#platform';
import { ID, ListSampleThingsQuery, NewSampleThing, SampleThing } from './sample-thing.dto.js';
import { SAMPLE_THING_NOT_FOUND, SampleThingsService } from './sample-things.service.js';

@Tag('Sample things', 'The sample things of this service.')
@Controller('sample-things')
export class SampleThingsController {
  constructor(private readonly sampleThings: SampleThingsService) {}

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
  @Created(SampleThing, 'The added sample thing.')
  createSampleThing(
    @Body() newSampleThing: NewSampleThing,
    @Idempotent() key: IdempotencyKey | undefined,
  ): Promise<SampleThing> {
    return this.sampleThings.create(newSampleThing, key);
  }

  @Get(':sampleThingId')
  @RequireScopes('sample-things:read')
  @ApiOperation({ summary: 'Get one sample thing', description: 'One sample thing by its identifier.' })
  @ApiOkResponse({ type: SampleThing, description: 'The sample thing.' })
  getSampleThing(@PathId('sampleThingId', SAMPLE_THING_NOT_FOUND, ID) id: bigint): Promise<SampleThing> {
    return this.sampleThings.get(id);
  }

  @Delete(':sampleThingId')
  @HttpCode(204)
  @RequireScopes('sample-things:delete')
  @ApiOperation({ summary: 'Delete one sample thing', description: 'Deletes one sample thing by its identifier.' })
  @ApiNoContentResponse({ description: 'The sample thing is deleted.' })
  deleteSampleThing(@PathId('sampleThingId', SAMPLE_THING_NOT_FOUND, ID) id: bigint): Promise<void> {
    return this.sampleThings.delete(id);
  }
}
