"""What `explorax --help` and its subcommands say."""

EXIT_CODES = """\
exit codes:
  0    done
  1    the run failed: a worker process died, or a file could not be written
  2    wrong usage or settings; one line on standard error says what to change
  3    --strict was given and a claim does not hold
  130  stopped by Ctrl-C; the same command goes on from there
  143  stopped by SIGTERM, likewise
"""

ABOUT = """\
Exploration in generalized linear bandits: the algorithms, the theory and the
experiments of "Randomized Exploration in Generalized Linear Bandits" (Kveton,
Zaheer, Szepesvari, Li, Ghavamzadeh and Boutilier, AISTATS 2020).
"""

EXAMPLES = """\
examples:
  explorax reproduce logistic --quick        Figure 1 in small: a first look
  explorax reproduce logistic                Figure 1 as in the paper
  explorax reproduce deep --quick            Figure 2 in small, on small images
  explorax reproduce deep --data DIR         Figure 2 as in the paper
  explorax reproduce theorems                regret under the bounds of the theorems
  explorax run --example > mine.toml         settings for a study of your own
  explorax run mine.toml                     ... and its run
  explorax report results/logistic           rebuild tables, figures and report
  explorax policies                          the algorithms there are
  explorax theory --features 5 --rounds 50000

`explorax COMMAND --help` explains each command.

"""

LOGISTIC = """\
Reproduces Figure 1 of the paper: regret in logistic bandits.

An instance has K = 100 arms, drawn uniformly from [-1, 1]^d and fixed, and a
parameter theta ~ N(0, (3/d) I).  Pulling arm x pays 1 with probability
1 / (1 + exp(-x'theta)), else 0.  GLM-UCB, UCB-GLM, GLM-TSL and GLM-FPL play the
same 100 instances for 50 000 rounds in each of d = 5, 10, 20 dimensions, both
with the exploration that the theorems ask for ("theory") and with the milder
one that people use ("informal").  Regret is what the best arm would have paid
in expectation, minus what the pulled arms did, summed over the rounds.

The paper's claims about the figure are then checked by code, one by one.
"""

FILES = """\
files in the out directory:
  report.html      all that was found, on one page that needs nothing else
  figure1.png/pdf  mean regret, or average reward, over rounds with a band of 1
                   standard error, in panels; --log adds figure1-log; it is
                   figure2 for `reproduce deep`, theorems for `reproduce theorems`
  summary.csv      a row for each curve and panel: regret after the last round,
                   or average reward, its mean, standard error, quantiles and
                   maximum over instances, seconds spent compiling and running,
                   and fits that did not converge
  claims.json      each claim, whether it holds, and the numbers behind that
  regret.parquet   every instance: curve, policy, design, environment, panel,
                   instance, round, cumulative regret and reward, a digest of
                   the arms pulled, unconverged fits
  manifest.json    settings, versions, device and times
  parts/           what is finished of a run; a run that was stopped, even by a
                   kill or a power cut, goes on from there when started again

"""

AROUND_LOGISTIC = """\
examples:
  explorax reproduce logistic --quick
  explorax reproduce logistic --dims 5 --policies glm_tsl glm_fpl uniform
  explorax reproduce logistic --bound --out results/with-bounds
  explorax reproduce logistic --parameter-variance printed --out results/printed

how long it takes: the full run is 120 million rounds, --quick is 50 times less and
spends most of its time compiling.  The display tells the time left.

"""
AROUND_LOGISTIC += FILES

DEEP = """\
Reproduces Figure 2 of the paper: average reward in deep bandits.

A round shows K = 10 random images.  One of the target label, which the policy is
not told, pays 1 with probability 0.75, any other with 0.25.  DeepFPL trains a
neural network on perturbed rewards, DeepFL on the rewards themselves, and
repGLM-FPL learns one from random arms in the first m percent of the rounds, then
plays GLM-FPL on its hidden layer.  All play the same 500 instances, 50 for each
label, for 10 000 rounds on MNIST and on Fashion-MNIST, with ReLU and with tanh
units.  The best possible average reward is 0.576.

The paper's claims about the figure are then checked by code, one by one.
"""

AROUND_DEEP = """\
examples:
  explorax reproduce deep --quick
  explorax reproduce deep --data data --datasets mnist --activations relu
  explorax reproduce deep --policies deep_fpl uniform --replay uniform
  explorax reproduce deep --datasets mine.csv --rounds 5000 --instances 50

the data: MNIST and Fashion-MNIST are downloaded once, into the user's cache.  With
--data DIR, or EXPLORAX_DATA=DIR in the environment, nothing is: the images and labels
are then train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz in DIR/mnist and
DIR/fashion-mnist, as they were published.  The small digits come with scikit-learn.
A file is a table, CSV or Parquet, with a column `label`, or the one that --label names.

how long it takes: the full run is 120 million rounds, each with a training step, and
is meant for a GPU.  The display tells the time left.

"""
AROUND_DEEP += FILES

THEOREMS = """\
Plays GLM-TSL and GLM-FPL as Theorems 1 and 2 ask, and compares their regret with the
bounds that these prove.

An instance has K = 100 arms with one non-zero feature each, uniform on [-1, 1]; theta
is s (1, 2, ..., d) / |(1, 2, ..., d)|, of known length s, so that the smallest slope
of the mean near it is known.  From that the exploration scale a and the tau rounds of
initial exploration are computed, as the theorems say.  Rewards are 0 or 1 (s = 0.2), or
normal with standard deviation 0.02 (s = 1).

That the regret of every instance is under its bound is then checked by code.  The bounds
are loose: what they are worth is in the numbers of the claims, and in the figure, which
also shows n Delta_max, the most regret that any policy could have.
"""

AROUND_THEOREMS = """\
examples:
  explorax reproduce theorems --quick
  explorax reproduce theorems
  explorax reproduce theorems --environment gaussian

how long it takes: minutes on a CPU.  The display tells the time left.

"""
AROUND_THEOREMS += FILES

RUN = """\
Runs a study of your own: any policies of `explorax policies`, with any settings,
on a random environment.  The settings are a TOML file.

  environment            "logistic" (rewards 0 or 1), "gaussian", "poisson", or
                         "classification": a data set, where one label pays
  dims                   list of d, the numbers of features; a panel of the figure
                         for each
  panels                 in place of dims, list of tables:
      label              what the panel is called
      environment_settings, curve_settings
                         what it adds to the settings of the environment, and of
                         the curves whose policies take it
      tags               its columns in summary.csv; the label if absent
  rounds                 n, the length of a run
  curves                 list of tables, one for each curve of the figure:
      policy             a name from `explorax policies`
      design             "informal" (the default) or "theory"
      label              what the curve is called; from policy and design if absent
      settings           arguments of the policy, as for explorax.make; its family of
                         rewards is that of the environment
  name                   of the study; its results go to results/NAME
  measure                "regret" (the default) or "reward", its average per round
  instances              how many random problems each curve plays (100)
  seed                   the same seed, the same instances (0)
  checkpoints            how often regret is recorded (100), or a list of rounds
  spacing                of the checkpoints: "even" (the default) or "log"
  environment_settings   table of arguments of the environment: arms (100),
                         parameter_variance, nonzero (features of an arm that are
                         not 0), best_score (of the best arm, to which theta is
                         scaled), arms_change, fixed_arms, theta; of
                         "classification": data ("digits", "mnist", "fashion" or
                         the path of a CSV or Parquet file), label (its column),
                         arms (10), high, low, target, intercept (whether examples
                         get a feature that is 1: where numbers need it if absent)

`explorax run --example` prints a complete file to start from.
"""

EXAMPLE = """\
# A study of one's own: explorax run mine.toml
name = "mine"                     # results go to results/mine

environment = "logistic"          # rewards 0 or 1; also "gaussian" and "poisson"
dims = [5, 10]                    # numbers of features; one panel of the figure for each
measure = "regret"                # or "reward": the average per round
rounds = 2000
instances = 50                    # random problems that every curve plays
seed = 0
checkpoints = 100                 # how often regret is recorded
spacing = "even"                  # or "log": more of them early

[environment_settings]
n_arms = 50

[[curves]]
policy = "glm_tsl"                # a name from `explorax policies`
design = "theory"                 # the exploration that the theorem asks for

[[curves]]
policy = "glm_tsl"                # without a design: the informal one

[[curves]]
policy = "glm_fpl"
label = "GLM-FPL, a = 1/4"
settings = { scale = 0.25, ridge = 0.1 }   # any argument of the policy

[[curves]]
policy = "uniform"
"""

THEORY = """\
Prints what the theorems say about a problem with d features and n rounds: c1 (the
width of the confidence set), and for each policy the exploration scale or width it
prescribes, c2 (how far its perturbation reaches), the eigenvalue that the initial
exploration must bring G = sum x x' to, and the bound on the regret, without the
cost of that exploration.  `explorax.theory.describe(arms, rounds=n)` in Python takes
a matrix of arms and adds the number of exploration rounds.
"""

REPORT = """\
Writes summary.csv, claims.json, the figures and report.html anew from the records of
a run.  Also of one that is not finished, or still running: the report then says so.
"""
