import {
  Controller,
  HttpCode,
  type MessageEvent,
  Post,
  RequestMethod,
  Sse,
  Version,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { NEVER, type Observable } from 'rxjs';
import { routeOf } from './routes.internals.js';

@Controller({ version: VERSION_NEUTRAL })
class Trial {
  @Post('trial') @HttpCode(202) @ApiOperation({ operationId: 'trial' }) accept(): void {}
  @Sse('trial') @Version('7') @ApiOperation({ summary: 'Trial.' }) stream(): Observable<MessageEvent> {
    return NEVER;
  }
  other(): void {}
}

test('what the decorators of a handler declare of its route', () => {
  const { accept, stream, other } = Trial.prototype as unknown as Record<'accept' | 'stream' | 'other', object>;
  expect([accept, stream, other].map((handler) => routeOf(Trial, handler))).toEqual([
    { method: RequestMethod.POST, operationId: 'trial', status: 202, isStream: false, isNeutral: true },
    { method: RequestMethod.GET, operationId: undefined, status: undefined, isStream: true, isNeutral: false },
    undefined,
  ]);
});
