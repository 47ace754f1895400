import {
  Body,
  type CanActivate,
  Controller,
  Get,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Post,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { TextProperty } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';

class Note {
  @TextProperty({ description: 'What to remember.', minLength: 1, maxLength: 20 })
  readonly text!: string;
}

@Public()
@Controller('test-notes')
class TestNotesController {
  @Get()
  list(): string[] {
    return [];
  }

  @Post()
  add(@Body() note: Note): { text: string; isNote: boolean } {
    return { text: note.text, isNote: note instanceof Note };
  }
}

let guarded = 0;

class CountingGuard implements CanActivate {
  canActivate(): boolean {
    guarded++;
    return true;
  }
}

@Controller('test-uploads')
@UseGuards(CountingGuard)
class TestUploadsController {
  @Post()
  @UseInterceptors(FileInterceptor('file'))
  upload(): string {
    return 'uploaded';
  }

  @Post('note')
  addGuarded(@Body() note: Note): string {
    return note.text;
  }
}

/** What a middleware does with `request.body`, by name. The query of a request selects one. */
const MIDDLEWARE: Record<string, RequestHandler> = {
  parses: express.json(),
  // Like multer with the fields of a form.
  uploads: (request, _, next) => {
    const fields = Object.create(null) as Record<string, unknown>;
    request.body = fields;
    fields['text'] = 'from a form';
    next();
  },
};

@Module({ controllers: [TestNotesController, TestUploadsController] })
class NotesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer
      .apply((request: Request, response: Response, next: NextFunction): unknown =>
        MIDDLEWARE[request.originalUrl.split('?')[1] ?? '']?.(request, response, next),
      )
      .forRoutes('test-notes');
  }
}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [NotesModule] });
});
afterAll(() => app.close());

describe('request.body', () => {
  test('express.json() sets it, and @Body() validates what it has set', async () => {
    expect((await app.client.get('/v1/test-notes?parses')).status).toBe(200);
    expect((await app.client.post('/v1/test-notes?parses', { text: 'parsed' })).json).toEqual({
      text: 'parsed',
      isNote: true,
    });
    expect((await app.client.post('/v1/test-notes?parses', { text: 1 })).json).toMatchObject({
      code: 'validation_failed',
    });
    expect((await app.client.send('POST', '/v1/test-notes?parses')).json).toMatchObject({ code: 'missing_body' });
    expect((await app.client.post('/v1/test-notes?parses', '{')).status).toBe(400);
  });

  test('@Body() gets the body that a middleware for forms sets', async () => {
    const answer = await app.client.send('POST', '/v1/test-notes?uploads', {
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
    });
    expect(answer.json).toEqual({ text: 'from a form', isNote: true });
  });
});

describe('bodies that code of modules reads', () => {
  const FORM = 'multipart/form-data; boundary=x';
  const PART = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nrex';
  const JSON_TYPE = 'application/json';
  let impatient: TestApp;
  beforeAll(async () => {
    const settings = { REQUEST_TIMEOUT_MS: '500' };
    impatient = await createTestApp({ features: [NotesModule], settings });
  });
  afterAll(() => impatient.close());

  function head(path: string, type: string, length: number, ...more: string[]): string {
    const fields = [`Content-Type: ${type}`, `Content-Length: ${length}`, `Authorization: Bearer ${impatient.apiKey}`];
    return `${[`POST ${path} HTTP/1.1`, 'Host: x', ...fields, ...more].join('\r\n')}\r\n\r\n`;
  }

  const READERS: [reader: string, path: string, type: string, body: string][] = [
    ['multer', '/v1/test-uploads', FORM, `${PART}\r\n--x--\r\n`],
    ['express.json()', '/v1/test-notes?parses', JSON_TYPE, '{"text":"rex"}'],
    ['a guard', '/v1/test-uploads/note', JSON_TYPE, '{"text":"rex"}'],
  ];

  test.each(READERS)('100 Continue as soon as %s reads', async (_, path, type, body) => {
    const answer = await rawRequest(impatient.port, head(path, type, body.length, 'Expect: 100-continue'), {
      then: { after: '100 Continue\r\n\r\n', send: body },
      until: ' 201 ',
    });
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });

  test.each(READERS)('408 request_timeout: half a body for %s and then silence', async (_, path, type, body) => {
    const answer = await rawRequest(impatient.port, `${head(path, type, body.length)}${body.slice(0, 12)}`);
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test.each(READERS)('a client that disconnects while %s reads causes no error', async (reader, path, type, body) => {
    const id = reader.replace(/\W/g, '');
    const socket = connect(impatient.port, '127.0.0.1').on('error', () => undefined);
    socket.write(`${head(path, type, body.length, `X-Request-Id: ${id}`)}${body.slice(0, 12)}`);
    await sleep(100);
    socket.destroy();
    const line = (): object | undefined => impatient.log.requests.find(({ requestId }) => requestId === id);
    for (let waited = 0; line() === undefined && waited < 5_000; waited += 20) await sleep(20);
    expect(line()).toMatchObject({ aborted: true });
    expect(impatient.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
  });

  test('nothing is read before the API key is checked, also not for guards and interceptors', async () => {
    guarded = 0;
    const text = head('/v1/test-uploads/note', JSON_TYPE, 100).replace('Bearer ', 'Bearer x');
    expect(await rawRequest(impatient.port, text)).toMatch(/^HTTP\/1\.1 401 /);
    expect(guarded).toBe(0);
  });

  test('a fault in a body that guards and interceptors get is answered before they run', async () => {
    guarded = 0;
    const post = (body: string): Promise<unknown> => impatient.client.post('/v1/test-uploads/note', body);
    expect(await post('{')).toMatchObject({ status: 400, json: { code: 'malformed_json' } });
    expect(await post(JSON.stringify('x'.repeat(70_000)))).toMatchObject({ status: 413 });
    expect(guarded).toBe(0);
  });
});

describe('bodies that are still arriving', () => {
  const SIZE = 1_048_576;
  const sockets: Socket[] = [];
  let large: TestApp;
  beforeAll(async () => {
    large = await createTestApp({ settings: { MAX_BODY_BYTES: String(SIZE) } });
  });
  afterAll(async () => {
    sockets.forEach((socket) => socket.destroy());
    await large.close();
  });

  /** Sends a body without its last byte, and returns the answer. */
  function sendAlmost(): { answer: string } {
    const sent = { answer: '' };
    const head = [
      'POST /v1/pets HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${large.apiKey}`,
      'Content-Type: application/json',
      `Content-Length: ${SIZE}`,
    ];
    const socket = connect(large.port, '127.0.0.1', () => {
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      socket.write(Buffer.alloc(SIZE - 1, ' '));
    });
    socket.on('error', () => undefined).on('data', (bytes) => (sent.answer += bytes.toString('latin1')));
    sockets.push(socket);
    return sent;
  }

  async function until(condition: () => boolean): Promise<void> {
    for (let waited = 0; !condition(); waited += 20) {
      if (waited > 20_000) throw new Error('The condition is not met within 20 s.');
      await sleep(20);
    }
  }

  test('503 unavailable with Retry-After beyond 64 MiB; a body in one piece is served, and all bodies when memory is free again', async () => {
    const all = Array.from({ length: 72 }, sendAlmost);
    const refused = (): string[] => all.map(({ answer }) => answer).filter((answer) => answer !== '');
    await until(() => refused().length >= 72 - 63);
    expect(refused().length).toBeLessThan(72 / 2);
    for (const answer of refused()) {
      expect(answer).toMatch(/^HTTP\/1\.1 503 [^]*\r\nRetry-After: 1\r\n[^]*"code":"unavailable"/);
    }
    expect((await large.client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).status).toBe(201);

    sockets.forEach((socket) => socket.destroy());
    await sleep(100);
    const later = Array.from({ length: 40 }, sendAlmost);
    await sleep(1_000);
    expect(later.map(({ answer }) => answer).filter((answer) => answer !== '')).toEqual([]);
  });
});
