import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Module,
  type NestInterceptor,
  Post,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import type { Request } from 'express';
import type { Observable } from 'rxjs';
import { Public, RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';

/* Guards and interceptors of modules see a JSON body also where the handler takes none, as on stock Nest. */

let seen: unknown[] = [];

function look(context: ExecutionContext): true {
  const { body, rawBody } = context.switchToHttp().getRequest<Request>();
  seen.push([body, rawBody?.toString()]);
  return true;
}

class TenantGuard implements CanActivate {
  canActivate = look;
}

class AuditInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    look(context);
    return next.handle();
  }
}

@Controller('test-logins')
@Public()
class LoginsController {
  @Post('guarded')
  @UseGuards(TenantGuard)
  guarded(): object {
    return {};
  }

  @Post('audited')
  @UseInterceptors(AuditInterceptor)
  audited(): object {
    return {};
  }

  @Post('plain')
  plain(): object {
    return {};
  }

  @Post('closed')
  @RequireScopes('toys:read')
  @UseGuards(TenantGuard)
  closed(): object {
    return {};
  }
}

@Module({ controllers: [LoginsController] })
class LoginsModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [LoginsModule], settings: { MAX_BODY_BYTES: '1024' } });
});
afterAll(() => app.close());
beforeEach(() => (seen = []));

const JSON_BODY = '{"tenant":"acme"}';
const LARGE = JSON.stringify({ tenant: 'a'.repeat(1_100) });

test.each([
  ['a guard', 'guarded', JSON_BODY, 'application/json', 201, [[{ tenant: 'acme' }, JSON_BODY]]],
  ['an interceptor', 'audited', JSON_BODY, 'application/json', 201, [[{ tenant: 'acme' }, JSON_BODY]]],
  ['a guard, unreadable', 'guarded', '{', 'application/json', 400, []],
  ['a guard, too large', 'guarded', LARGE, 'application/json', 413, []],
  ['an interceptor, unreadable', 'audited', '{', 'application/json', 201, [[undefined, '{']]],
  ['an interceptor, too large', 'audited', LARGE, 'application/json', 201, [[undefined, undefined]]],
  ['a guard, another type', 'guarded', 'a,b', 'text/csv', 201, [[undefined, undefined]]],
  ['a guard, multipart', 'guarded', '--x--', 'multipart/form-data; boundary=x', 201, [[undefined, undefined]]],
  ['nobody, unreadable', 'plain', '{', 'application/json', 201, []],
  ['a guard behind a missing key', 'closed', JSON_BODY, 'application/json', 401, []],
])('the body before %s', async (_, path, body, type, status, expected) => {
  const options = { headers: { 'content-type': type }, apiKey: null };
  const answer = await app.client.post(`/v1/test-logins/${path}`, body, options);
  expect([answer.status, seen]).toEqual([status, expected]);
});
