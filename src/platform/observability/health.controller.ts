import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { Database } from '../database/database.js';
import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { PassesRequestToLog } from '../server/requests/served-request.js';

/** Health checks for load balancers and process managers. Public. */
@Public()
@ApiExcludeController()
@PassesRequestToLog()
@Controller({ path: 'health', version: VERSION_NEUTRAL })
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  /** Always 200 while the process answers: a restart would not help. */
  @Get('live')
  @Header('Cache-Control', 'no-store')
  checkLiveness(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * 200 while this process can serve requests.
   *
   * @throws ApiError UNAVAILABLE while the server drains, the database is unreachable, or the schema is outdated, or newer and not
   * backward compatible
   */
  @Get('ready')
  @Header('Cache-Control', 'no-store')
  async checkReadiness(): Promise<{ status: 'ok' }> {
    if (this.adapterHost.httpAdapter.isDraining) {
      throw notReady('The server is shutting down.');
    }
    const readiness = await this.database.readiness();
    if (readiness === 'unreachable') throw notReady('The database does not answer.');
    if (readiness !== 'ready') throw notReady(readiness.message);
    return { status: 'ok' };
  }
}

function notReady(message: string): ApiError {
  return new ApiError(UNAVAILABLE, message, { 'Retry-After': '1' });
}
