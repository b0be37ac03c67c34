import { readFinalStage } from '../../test/image/final-stage.js';

/** The flags with which the image runs Node.js, so that tests and benchmarks run what is shipped. */
export async function nodeFlags(): Promise<string[]> {
  const { config } = await readFinalStage();
  return config.Entrypoint.filter((argument) => argument.startsWith('--'));
}
