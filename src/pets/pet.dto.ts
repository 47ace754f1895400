import { ApiSchema } from '@nestjs/swagger';
import {
  ArraySchema,
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  EnumProperty,
  int64Of,
  Int64Property,
  LimitParameter,
  MAX_PAGE_SIZE,
  TextProperty,
} from '#platform';
import { MAX_NAME_LENGTH, PET_STATUSES, type PetEntity, type PetStatus } from './pet.entity.js';

/** An id for examples; the first pet of each catalogue has it. */
export const EXAMPLE_ID = 1;

const NAME = {
  description:
    "The pet's name, kept exactly as it was sent. At least one character is not white space, of which the pattern has a " +
    'list, and none is U+0000.',
  example: 'Rex',
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  notBlank: true,
};
const CATEGORY_ID = { description: 'Identifier of the category the pet belongs to.', example: 7 };
const STATUS = {
  enum: PET_STATUSES,
  enumName: 'PetStatus',
  enumSchema: { description: 'Availability of a pet.', example: 'available' },
  example: 'available',
};

/** A whole body, for programs that do not put the examples of members together. */
export const EXAMPLES = {
  pet: { value: { name: NAME.example, categoryId: CATEGORY_ID.example, status: STATUS.example } },
};

/** Body of createPet. */
@ApiSchema({ description: 'A pet to add. Members that are not listed here are ignored.' })
export class NewPet {
  @TextProperty(NAME)
  name: string;

  @Int64Property(CATEGORY_ID)
  categoryId: bigint;

  @EnumProperty({
    ...STATUS,
    description: 'Availability of the pet; `available` when it is not sent.',
    required: false,
  })
  status: PetStatus = 'available';
}

/** A pet as it is returned. */
@ApiSchema({ description: 'A pet of the catalogue.' })
export class Pet {
  @Int64Property({
    description: 'Unique identifier, assigned by the service on creation. Ascending, not gapless.',
    example: EXAMPLE_ID,
  })
  id: bigint;

  @TextProperty(NAME)
  name: string;

  @Int64Property(CATEGORY_ID)
  categoryId: bigint;

  @EnumProperty({ ...STATUS, description: 'Availability of the pet.' })
  status: PetStatus;
}

/** The array of pets that listPets returns. */
@ArraySchema(Pet, 'A page of pets, by ascending id.', MAX_PAGE_SIZE)
export class Pets {}

/** Query of listPets. */
export class ListPetsQuery {
  @LimitParameter('Maximum number of pets returned.')
  limit = DEFAULT_PAGE_SIZE;

  @EnumProperty({ ...STATUS, description: 'Return only pets with this availability.', required: false })
  status?: PetStatus;

  @CursorParameter(
    "Start of the page: copy it from the previous page's `Link` and keep the same `status`. Leave it out for the first page.",
  )
  cursor?: string;
}

export function toPet({ id, name, categoryId, status }: PetEntity): Pet {
  const pet = new Pet();
  // `Object.assign` would take five times as long, for each pet of a page.
  pet.id = int64Of(id);
  pet.name = name;
  pet.categoryId = int64Of(categoryId);
  pet.status = status;
  return pet;
}
