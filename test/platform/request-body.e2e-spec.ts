import { Body, Controller, Get, type MiddlewareConsumer, Module, type NestModule, Post } from '@nestjs/common';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { setTimeout as sleep } from 'node:timers/promises';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { TextProperty } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

class Note {
  @TextProperty({ description: 'What to remember.', minLength: 1, maxLength: 20 })
  readonly text!: string;
}

@Public()
@Controller('notes')
class NotesController {
  @Get()
  list(): string[] {
    return [];
  }

  @Post()
  add(@Body() note: Note): { text: string; isNote: boolean } {
    return { text: note.text, isNote: note instanceof Note };
  }
}

const seen: unknown[] = [];

/** What a middleware does with `request.body`. The query of a request names one. */
const MIDDLEWARE: Record<string, RequestHandler> = {
  looks: (request, _, next) => {
    seen.push(request.body);
    next();
  },
  parses: express.json(),
  // As multer does with the fields of a form.
  uploads: (request, _, next) => {
    const fields = Object.create(null) as Record<string, unknown>;
    request.body = fields;
    fields['text'] = 'from a form';
    next();
  },
};

@Module({ controllers: [NotesController] })
class NotesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer
      .apply((request: Request, response: Response, next: NextFunction): unknown =>
        MIDDLEWARE[request.originalUrl.split('?')[1] ?? '']?.(request, response, next),
      )
      .forRoutes('notes');
  }
}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ modules: [NotesModule] });
});
afterAll(() => app.close());

describe('request.body', () => {
  test('a middleware that looks at it on any request ends nothing', async () => {
    const rejections: unknown[] = [];
    const onRejection = (reason: unknown): void => void rejections.push(reason);
    process.on('unhandledRejection', onRejection);
    try {
      expect((await app.client.get('/v1/notes?looks')).status).toBe(200);
      expect((await app.client.send('HEAD', '/v1/notes?looks')).status).toBe(200);
      expect((await app.client.send('DELETE', '/v1/notes?looks')).status).toBe(405);
      expect((await app.client.send('OPTIONS', '/v1/notes?looks')).status).toBe(204);
      expect((await app.client.post('/v1/notes?looks', '{')).json).toMatchObject({ code: 'malformed_json' });
      expect((await app.client.send('POST', '/v1/notes?looks')).json).toMatchObject({ code: 'missing_body' });
      expect((await app.client.post('/v1/notes?looks', { text: 'read' })).json).toEqual({ text: 'read', isNote: true });
      await sleep(20);
    } finally {
      process.off('unhandledRejection', onRejection);
    }
    expect(rejections).toEqual([]);
    expect(seen.length).toBeGreaterThanOrEqual(7);
    for (const body of seen) expect(body).toBeInstanceOf(Promise);
    expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
  });

  test('express.json() sets it, and @Body() validates what it has set', async () => {
    expect((await app.client.get('/v1/notes?parses')).status).toBe(200);
    expect((await app.client.post('/v1/notes?parses', { text: 'parsed' })).json).toEqual({
      text: 'parsed',
      isNote: true,
    });
    expect((await app.client.post('/v1/notes?parses', { text: 1 })).json).toMatchObject({ code: 'validation_failed' });
    expect((await app.client.send('POST', '/v1/notes?parses')).json).toMatchObject({ code: 'missing_body' });
    expect((await app.client.post('/v1/notes?parses', '{')).status).toBe(400);
  });

  test('what a middleware for forms sets is what @Body() gets', async () => {
    const answer = await app.client.send('POST', '/v1/notes?uploads', {
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
    });
    expect(answer.json).toEqual({ text: 'from a form', isNote: true });
  });
});
