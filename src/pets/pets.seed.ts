import type { DataSource } from 'typeorm';

const ADJECTIVES =
  'Amber Ash Bashful Blue Brave Brisk Bright Calm Clever Copper Curious Dapper Fluffy Gentle Ginger Golden Happy Honey ' +
  'Jolly Little Lucky Merry Misty Nimble Patchy Quick Quiet Rusty Shy Silver Snowy Spotted Sunny Velvet';
const NAMES =
  'Abby Ace Bailey Bella Biscuit Boots Buddy Charlie Cleo Coco Daisy Duke Felix Finn Gizmo Gus Hazel Iris Jasper Kiki ' +
  'Leo Loki Luna Maple Max Milo Minnie Mocha Nala Olive Oscar Otis Pepper Pip Poppy Rex Rosie Rufus Sadie Sam Simba ' +
  'Smokey Socks Tiger Toby Willow Ziggy Zoe';

const CATEGORIES = 40;

/** Seven in ten pets are sold, two available, one pending. */
const INSERT = `
  INSERT INTO pet (name, category_id, status)
  SELECT
    ($2::text[])[1 + floor(random() * cardinality($2::text[]))::int] || ' ' ||
      ($3::text[])[1 + floor(random() * cardinality($3::text[]))::int],
    1 + floor(random() * $4::int)::int,
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
    await dataSource.query(INSERT, [batch, ADJECTIVES.split(' '), NAMES.split(' '), CATEGORIES]);
    done += batch;
    await onProgress?.(done);
  }
  // Update the planner's statistics, so that the first requests get good plans.
  await dataSource.query('ANALYZE pet');
}
