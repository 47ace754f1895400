import { Body, Controller, Delete, Get, HttpCode, Module, Param, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { RequireScopes } from '../../src/platform/auth/require-scopes.decorator.js';
import { TextProperty } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* A module that lets clients manage their own API keys. */

class NewKey {
  @TextProperty({ description: 'Scope of the key.', example: 'pets:read', minLength: 1, maxLength: 100 })
  scope: string;
}

@Controller('test-keys')
@RequireScopes('keys:write')
class TestKeysController {
  constructor(private readonly keys: ApiKeysService) {}

  @Post()
  async addKey(@Body() { scope }: NewKey, @Req() { context }: Request): Promise<object> {
    const { key, secret } = await this.keys.create({ client: context.client as string, scopes: [scope] });
    return { id: key.id, secret };
  }

  @Get()
  async listKeys(@Req() { context }: Request): Promise<object> {
    const keys = await this.keys.list({ client: context.client });
    return keys.map(({ scopes, revokedReason }) => ({ scopes, revokedReason }));
  }

  @Delete(':id')
  @HttpCode(204)
  async revokeKey(@Param('id') id: string): Promise<void> {
    await this.keys.revoke(id, 'asked for');
  }
}

@Module({ controllers: [TestKeysController] })
class KeysModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [KeysModule] });
});
afterAll(() => app.close());

test('a module creates, lists and revokes keys, which takes effect at once', async () => {
  const apiKey = await app.createApiKey('keys:write');
  const made = await app.client.post('/v1/test-keys', { scope: 'pets:read' }, { apiKey });
  const { id, secret } = made.json as { id: number; secret: string };
  expect(made.status).toBe(201);
  expect((await app.client.get('/v1/pets', { apiKey: secret })).status).toBe(200);

  expect((await app.client.send('DELETE', `/v1/test-keys/${id}`, { apiKey })).status).toBe(204);
  expect((await app.client.get('/v1/pets', { apiKey: secret })).status).toBe(401);
  expect((await app.client.get('/v1/test-keys', { apiKey })).json).toContainEqual({
    scopes: ['pets:read'],
    revokedReason: 'asked for',
  });
  expect(JSON.stringify(app.log.lines)).not.toContain(secret);
});
