import { All, Controller, Get, Post, type Type, VersioningType } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { ApiOperation } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { Config, readConfig } from '../../config.js';
import { Public } from '../auth/public.decorator.js';
import { IdempotencyKey } from '../idempotency/idempotency-key.js';
import { Idempotent } from '../idempotency/idempotent.decorator.js';
import { OpenApiDocument } from './openapi-document.js';

async function describeControllers(...controllers: Type[]): Promise<OpenApiDocument> {
  const testingModule = await Test.createTestingModule({
    imports: [DiscoveryModule],
    controllers,
    providers: [OpenApiDocument, { provide: Config, useValue: readConfig({}) }],
  }).compile();
  const app = testingModule.createNestApplication();
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  const document = app.get(OpenApiDocument);
  document.describe(app);
  return document;
}

@Controller('toys')
class ToysController {
  @Get()
  list(): void {}
}

describe('OpenApiDocument', () => {
  test('has an operationId for each handler: its name', async () => {
    const { json, yaml } = await describeControllers(ToysController);
    expect(json).toContain('"operationId": "list"');
    expect(yaml).toContain('operationId: list');
  });

  test('refuses two handlers of the same name, naming both', async () => {
    @Controller('games')
    class GamesController {
      @Get()
      list(): void {}
    }
    await expect(describeControllers(ToysController, GamesController)).rejects.toThrow(
      'ToysController.list and GamesController.list have the same name',
    );
  });

  test('refuses an operationId that is not the name of the handler', async () => {
    @Controller('games')
    class GamesController {
      @Get()
      @ApiOperation({ operationId: 'searchGames' })
      listGames(): void {}
    }
    await expect(describeControllers(GamesController)).rejects.toThrow("GET /games cannot be described: 'searchGames'");
  });

  test('refuses a handler that is public and idempotent', async () => {
    @Controller('games')
    class GamesController {
      @Post()
      @Public()
      createGame(@Idempotent() key: IdempotencyKey | undefined): unknown {
        return key;
      }
    }
    await expect(describeControllers(GamesController)).rejects.toThrow(
      'GamesController.createGame cannot be @Public() and @Idempotent()',
    );
  });

  test('refuses a handler of all methods', async () => {
    @Controller('games')
    class GamesController {
      @All()
      playGame(): void {}
    }
    await expect(describeControllers(GamesController)).rejects.toThrow('one path and one method');
  });

  test('is not there before an application is described', async () => {
    const document = await Test.createTestingModule({
      imports: [DiscoveryModule],
      providers: [OpenApiDocument, { provide: Config, useValue: readConfig({}) }],
    }).compile();
    expect(() => document.get(OpenApiDocument).json).toThrow('before describe()');
  });
});
