import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ApiExcludeController } from '@nestjs/swagger';
import { serviceUnavailable } from '#errors';
import type { PlatformExpressAdapter } from '#edge';
import { Public } from '#operations';
import { Readiness } from './readiness.js';

/** Health checks for load balancers and process managers. Public. */
@Public()
@ApiExcludeController()
@Controller({ path: 'health', version: VERSION_NEUTRAL })
export class HealthController {
  constructor(
    private readonly checks: Readiness,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  /** Always 200: whatever else fails, a restart would not help while the process answers. */
  @Get('live')
  @Header('Cache-Control', 'no-store')
  checkLiveness(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * 200 while this process should get requests. An unreachable database is reported in `database`, but the process stays ready: all
   * instances share the database, and without ready instances the load balancer would respond instead of the service.
   *
   * @throws ApiError UNAVAILABLE while the server drains; while the embedded database is opened again after a crash; while a check of a
   *   module fails; when the schema does not fit; when row level security hides rows of the platform
   */
  @Get('ready')
  @Header('Cache-Control', 'no-store')
  async checkReadiness(): Promise<{ status: 'ok'; database?: 'unreachable'; warnings?: number }> {
    if (this.adapterHost.httpAdapter.isDraining) throw serviceUnavailable('draining', 'The server is shutting down.');
    const readiness = await this.checks.verify();
    if (typeof readiness === 'object') throw serviceUnavailable('schema', readiness.message);
    if (readiness === 'unreachable') return { status: 'ok', database: 'unreachable' };
    const { size } = this.checks.database.warnings;
    return size > 0 ? { status: 'ok', warnings: size } : { status: 'ok' };
  }
}
