import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation } from '@nestjs/swagger';
import { FailsWith, type Page, Paged, RequireScopes, Tag } from '#platform';
import { ListVisitsQuery, NewVisit, Visit } from './visit.dto.js';
import { VISITS_FULL, VisitsService } from './visits.service.js';

@Tag('Visits', 'Visits of pets to a veterinarian.')
@Controller('visits')
export class VisitsController {
  constructor(private readonly visits: VisitsService) {}

  @Get()
  @RequireScopes('visits:read')
  @ApiOperation({ summary: 'List visits', description: 'One page of the visits, oldest first.' })
  @Paged(Visit, 'A page of visits, oldest first.')
  listVisits(@Query() query: ListVisitsQuery): Promise<Page<Visit>> {
    return this.visits.list(query);
  }

  @Post()
  @RequireScopes('visits:write')
  @FailsWith(VISITS_FULL)
  @ApiOperation({ summary: 'Record a visit', description: 'Records that a pet was seen.' })
  @ApiCreatedResponse({ type: Visit, description: 'The recorded visit.' })
  recordVisit(@Body() visit: NewVisit): Promise<Visit> {
    return this.visits.record(visit);
  }
}
