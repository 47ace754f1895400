import type { DataSource } from 'typeorm';

const ADJECTIVES =
  'Amber Brave Calm Clever Curious Fluffy Gentle Golden Happy Little Lucky Nimble Quiet Rusty Shy Sunny';
const NAMES = 'Abby Bella Biscuit Boots Cleo Coco Daisy Felix Gizmo Hazel Leo Luna Max Milo Olive Pepper Rex Socks Zoe';

/** Seven in ten pets are sold, two available, one pending. */
const INSERT = `
  INSERT INTO pet (name, category_id, status)
  SELECT
    ($2::text[])[1 + floor(random() * cardinality($2::text[]))::int] || ' ' ||
      ($3::text[])[1 + floor(random() * cardinality($3::text[]))::int],
    1 + floor(random() * 40)::int,
    (CASE WHEN dice < 0.7 THEN 'sold' WHEN dice < 0.9 THEN 'available' ELSE 'pending' END)::pet_status
  FROM (SELECT random() AS dice FROM generate_series(1, $1::int)) AS pet`;

/**
 * Adds realistic pets to the catalogue. Each batch is committed separately: pets that were reported stay after a failure.
 *
 * @param batchSize largest number of pets that one statement adds
 * @param onProgress called after each batch with the number of pets added so far, and awaited
 */
export async function seedPets(
  dataSource: DataSource,
  count: number,
  batchSize: number,
  onProgress?: (done: number) => void | Promise<void>,
): Promise<void> {
  for (let done = 0; done < count;) {
    const batch = Math.min(batchSize, count - done);
    await dataSource.query(INSERT, [batch, ADJECTIVES.split(' '), NAMES.split(' ')]);
    done += batch;
    await onProgress?.(done);
  }
  // Update the planner's statistics, so that the first requests get good plans.
  await dataSource.query('ANALYZE pet');
}
