import 'reflect-metadata';
import { Exclude, Expose, Transform, Type } from 'class-transformer';
import { classesOf, hasTransformersBeside, sentNameOf, subTypesOf } from './class-transformers.internals.js';

const once = Transform(({ value }: { value: unknown }) => value);

class Plain {
  @once member: unknown;
}
class Exposed extends Plain {
  @Expose({ name: 'sent' }) other: unknown;
}
class Excluded extends Plain {
  @Exclude() other: unknown;
}
@Exclude()
class Hidden extends Plain {}
class Typed {
  @once @Type(() => Date) member: unknown;
}
class Twice {
  @once @once member: unknown;
}
class Chosen {
  @Type(() => Plain, { discriminator: { property: 'kind', subTypes: [{ value: Exposed, name: 'exposed' }] } })
  member: unknown;
}

test('the decorators of class-transformer at a class, besides one @Transform()', () => {
  const classes = [Plain, Exposed, Excluded, Hidden, Typed, Twice];
  expect(classes.map((each) => hasTransformersBeside(each, ['member']))).toEqual([false, true, true, true, true, true]);
});

test('the classes, names and subtypes of its properties', () => {
  expect([Typed, Chosen, Plain].map((each) => classesOf(each, 'member'))).toEqual([[Date], [Exposed], []]);
  expect(classesOf(Exposed, 'other')).toBeUndefined();
  expect(['other', 'member'].map((property) => sentNameOf(Exposed, property))).toEqual(['sent', 'member']);
  expect(subTypesOf(Chosen, 'member')).toEqual([{ name: 'exposed', value: Exposed }]);
});
