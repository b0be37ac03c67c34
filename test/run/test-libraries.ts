import { config } from 'chai';
import fc from 'fast-check';

/**
 * What `make test` says of a commit does not depend on chance: models and properties run the same examples each time. `MODEL_SEED=<number>` runs
 * others, as a single test file does by itself; a failure names its seed.
 */
fc.configureGlobal({ seed: Number(process.env.MODEL_SEED ?? 20_261_121) });

/** A failure shows the whole value: what failed once in a long run can't be looked at again. */
config.truncateThreshold = 0;
