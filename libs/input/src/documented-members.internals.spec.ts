import { ApiProperty } from '@nestjs/swagger';
import { documentedMembers } from './documented-members.internals.js';

class Ancestor {
  @ApiProperty() first: string;
}
class Trial extends Ancestor {
  @ApiProperty() second: string;
}

test('the documented members of a class are those of its ancestors first', () => {
  expect(documentedMembers(Trial)).toEqual(['first', 'second']);
  expect(documentedMembers(class {})).toEqual([]);
});
