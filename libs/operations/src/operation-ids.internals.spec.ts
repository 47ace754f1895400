import { ApiOperation } from '@nestjs/swagger';
import { operationIdOf } from './operation-ids.internals.js';

class Trial {
  @ApiOperation({ operationId: 'trial' }) named(): void {}
  @ApiOperation({ summary: 'Trial.' }) unnamed(): void {}
}

test('the operationId of a handler', () => {
  const { named, unnamed } = Trial.prototype as unknown as Record<'named' | 'unnamed', object>;
  expect([named, unnamed].map(operationIdOf)).toEqual(['trial', undefined]);
});
