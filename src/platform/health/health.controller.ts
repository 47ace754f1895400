import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { Database } from '../database/database.js';
import { serviceUnavailable } from '../errors/service-unavailable.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { PassesRequestToLog } from '../server/requests/served-request.js';
import { type CheckResults, ReadinessChecks } from './readiness-checks.js';

/** Health checks for load balancers and process managers. Public. */
@Public()
@ApiExcludeController()
@PassesRequestToLog()
@Controller({ path: 'health', version: VERSION_NEUTRAL })
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly checks: ReadinessChecks,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  /** Always 200 while the process answers: a restart would not help. */
  @Get('live')
  @Header('Cache-Control', 'no-store')
  checkLiveness(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * 200 while this process can serve requests, with the checks of modules if there are any.
   *
   * @throws ApiError UNAVAILABLE while the server drains, the database is unreachable, the schema is outdated, or newer and
   * not backward compatible, or a check of a module fails
   */
  @Get('ready')
  @Header('Cache-Control', 'no-store')
  async checkReadiness(): Promise<{ status: 'ok'; checks?: CheckResults }> {
    if (this.adapterHost.httpAdapter.isDraining) {
      throw serviceUnavailable('draining', 'The server is shutting down.');
    }
    const [readiness, checks] = await Promise.all([this.database.readiness(), this.checks.run()]);
    if (readiness === 'unreachable') throw serviceUnavailable('database_away', 'The database does not answer.');
    if (readiness !== 'ready') throw serviceUnavailable('schema', readiness.message);
    const failed = Object.keys(checks).filter((name) => checks[name] === 'failed');
    if (failed.length > 0) {
      throw serviceUnavailable('check', `These readiness checks fail: ${failed.join(', ')}.`, { details: { checks } });
    }
    return Object.keys(checks).length > 0 ? { status: 'ok', checks } : { status: 'ok' };
  }
}
