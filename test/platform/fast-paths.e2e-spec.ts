import { jest } from '@jest/globals';
import type { Express, Request, Response } from 'express';
import { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Database } from '#postgres';
import { executePreparedQuery } from '../../libs/postgres/src/prepared-query.internals.js';
import { createTestApp } from '../support/app.js';

/* Which fast paths a service uses. The suite, which also runs with FAST_PATHS=off, shows that answers are the same. */

interface Observed {
  /** Fast paths in use. */
  readonly used: string[];
  readonly warnings: string[];
}

/** Starts a service, sends it a request, and looks at the objects that a fast path would replace. */
async function observe(setting: string): Promise<Observed> {
  const app = await createTestApp({ settings: { FAST_PATHS: setting } });
  try {
    const express = app.nest.getHttpAdapter().getInstance() as Express;
    const used: string[] = [];
    (app.nest.getHttpServer() as Server).prependOnceListener('request', (request: Request, response: Response) => {
      const ofRequest = Object.getPrototypeOf(request) as object;
      const ofResponse = Object.getPrototypeOf(response) as object;
      if (ofRequest === express.request && ofResponse === express.response) used.push('message-prototypes');
      // The server has its own request class, which handles `upgrade`.
      else if (
        Object.getPrototypeOf(ofRequest) !== IncomingMessage.prototype ||
        ofResponse !== ServerResponse.prototype
      )
        used.push('other prototypes');
      if (Object.hasOwn(request.socket, '_writev')) used.push('joined-writes');
    });
    const read = jest.spyOn(app.nest.get(Database), 'read');
    const { status } = await app.client.get('/v1/pets');
    expect(status).toBe(200);
    const { executionContextCreator } = (app.nest as any).routesResolver.routerExplorer;
    if (Object.getPrototypeOf(executionContextCreator) !== RouterExecutionContext.prototype) used.push('handler-calls');
    if (app.nest.get<any>(Database).statements.execute === executePreparedQuery) used.push('prepared-queries');
    if (read.mock.calls.length > 0) used.push('batching');
    return { used: used.sort(), warnings: app.log.lines.filter(({ level }) => level >= 40).map(({ msg }) => msg) };
  } finally {
    await app.close();
  }
}

const ALL = ['batching', 'handler-calls', 'joined-writes', 'message-prototypes', 'prepared-queries'];

test.each<[setting: string, used: readonly string[]]>([
  ['', ALL],
  ['on', ALL],
  ['off', []],
])('FAST_PATHS=%s', async (setting, used) => {
  expect(await observe(setting)).toEqual({ used, warnings: [] });
});
