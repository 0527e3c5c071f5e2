"""The help texts of the command `explorax`."""

EXIT_CODES = """\
exit codes:
  0    done
  1    the run failed: a worker process died, or a file could not be written
  2    wrong usage or settings; a line on standard error explains what to change
  3    --strict was given and a claim does not hold
  130  stopped by Ctrl-C; run the same command again to continue
  143  stopped by SIGTERM; run the same command again to continue
"""

OUT = "output directory, or an address on a shared or object store like s3://bucket/folder"

ABOUT = """\
Exploration in generalized linear bandits: the algorithms, the theory and the
experiments of "Randomized Exploration in Generalized Linear Bandits" (Kveton,
Zaheer, Szepesvari, Li, Ghavamzadeh and Boutilier, AISTATS 2020).
"""

EXAMPLES = """\
examples:
  explorax reproduce logistic --quick        a small version of Figure 1
  explorax reproduce logistic                Figure 1 as in the paper
  explorax reproduce deep --quick            a small version of Figure 2
  explorax reproduce deep --data DIR         Figure 2 as in the paper
  explorax reproduce theorems                regret under the theorems' bounds
  explorax run --example > mine.toml         settings of a study of your own
  explorax run mine.toml                     run that study
  explorax report results/logistic           write the report anew
  explorax evaluate decisions.db --policy glm_tsl
                                             what it would have earned
  explorax policies                          list all policies
  explorax log show decisions.db             print what is in the log of an agent
  explorax theory --features 5 --rounds 50000

`explorax COMMAND --help` describes each command.

"""

LOGISTIC = """\
Reproduce Figure 1 of the paper: regret in logistic bandits.

An instance has K = 100 arms, drawn uniformly from [-1, 1]^d and fixed, and a
parameter theta ~ N(0, (3/d) I).  Pulling arm x pays 1 with probability
1 / (1 + exp(-x'theta)), and 0 otherwise.  GLM-UCB, UCB-GLM, GLM-TSL and GLM-FPL play the
same 100 instances for 50 000 rounds in each of d = 5, 10, 20 dimensions, both
with the exploration that the theorems ask for ("theory") and with the milder
exploration that is usual in practice ("informal").  Regret is the expected
reward of the best arm minus that of the pulled arm, summed over the rounds.

The paper's claims about the figure are then checked.
"""

FILES = """\
files in the output directory:
  report.html      the results on one page that loads no other files
  figure1.png/pdf  mean regret, or average reward, over rounds with a band of 1
                   standard error, in panels; --log adds figure1-log; the name is
                   figure2 for `reproduce deep`, theorems for `reproduce theorems`,
                   sweep for lists of settings
  summary.csv      a row for each curve and panel: regret after the last round,
                   or average reward, with mean, standard error, quantiles and
                   maximum over instances, seconds spent compiling and running
                   (curves that share a program compile it once, and the seconds
                   count for the first), and fits that did not converge; with
                   lists of settings, their values and which are best
  claims.json      each claim, whether it holds, and the evidence with numbers
  regret.parquet   a row for each instance and checkpoint: curve, policy, design,
                   environment, panel, instance, round, cumulative regret and
                   reward, a digest of the arms pulled, unconverged fits
  manifest.json    settings, versions, device and times
  parts/           records of finished tasks; a run that was stopped, even by a
                   power cut, continues from these when it is started again

"""

AROUND_LOGISTIC = """\
examples:
  explorax reproduce logistic --quick
  explorax reproduce logistic --dims 5 --policies glm_tsl glm_fpl uniform
  explorax reproduce logistic --bound --out results/with-bounds
  explorax reproduce logistic --parameter-variance printed --out results/printed

how long it takes: the full run is 120 million rounds; --quick is 50 times
smaller and spends most of its time compiling.  The display shows the time left.

"""
AROUND_LOGISTIC += FILES

DEEP = """\
Reproduce Figure 2 of the paper: average reward in deep bandits.

A round shows K = 10 random images.  An image of the target label, which the
policy does not know, pays 1 with probability 0.75, any other image with
probability 0.25.  DeepFPL trains a neural network on perturbed rewards, and
DeepFL trains one on the rewards themselves.  repGLM-FPL trains a network on
random arms in the first m percent of the rounds, then plays GLM-FPL on its
hidden layer.  All play the same 500 instances, 50 for each label, for 10 000
rounds on MNIST and on Fashion-MNIST, with ReLU and with tanh units.  The best
possible average reward is 0.576.

The paper's claims about the figure are then checked.
"""

AROUND_DEEP = """\
examples:
  explorax reproduce deep --quick
  explorax reproduce deep --data data --datasets mnist --activations relu
  explorax reproduce deep --policies deep_fpl uniform --replay uniform
  explorax reproduce deep --datasets mine.csv --rounds 5000 --instances 50

the data: MNIST and Fashion-MNIST are downloaded once, into the user's cache.
With --data DIR, or EXPLORAX_DATA=DIR in the environment, nothing is downloaded:
DIR/mnist and DIR/fashion-mnist must contain the files
train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz, as they were
published.  The digits come with scikit-learn.  A file of your own is a CSV or
Parquet table whose labels are in the column `label`, or in the column that
--label names.

how long it takes: the full run is 120 million rounds, each with a training
step, and is meant for a GPU.  The display shows the time left.

"""
AROUND_DEEP += FILES

THEOREMS = """\
Play GLM-TSL and GLM-FPL as Theorems 1 and 2 ask, and compare their regret with
the bounds of the theorems.

An instance has K = 100 arms with one non-zero feature each, uniform on [-1, 1].
theta is s (1, 2, ..., d) / |(1, 2, ..., d)|, of known length s, so that the
smallest slope of the mean near theta is known.  The exploration scale a and the
tau rounds of initial exploration are computed from that slope, as in the
theorems.  Rewards are 0 or 1 (s = 0.2), or normal with standard deviation 0.02
(s = 1).

The command then checks that the regret of every instance is under its bound.
The bounds are loose: the claims and the figure compare them with n Delta_max,
the most regret that any policy could have.
"""

AROUND_THEOREMS = """\
examples:
  explorax reproduce theorems --quick
  explorax reproduce theorems
  explorax reproduce theorems --environment gaussian

how long it takes: minutes on a CPU.  The display shows the time left.

"""
AROUND_THEOREMS += FILES

RUN = """\
Run a study of your own: any policies of `explorax policies`, with any settings,
on a random environment.  The settings are in a TOML file:

  environment            "logistic" (rewards of 0 and 1), "gaussian", "poisson",
                         or "classification" (a data set in which one label
                         pays)
  dims                   list of numbers of features d, one panel of the figure
                         for each
  panels                 list of tables, instead of dims:
      label              name of the panel
      environment_settings, curve_settings
                         settings that are added to those of the environment,
                         and to those of the curves whose policies take them
      tags               columns of summary.csv that name the panel (default:
                         its label)
  rounds                 length n of a run
  curves                 list of tables, one for each curve of the figure:
      policy             a name from `explorax policies`
      design             "informal" or "theory" (default: "informal")
      label              name of the curve (default: from policy and design)
      settings           arguments of the policy, as for explorax.make; the
                         family of the rewards is that of the environment
  name                   name of the study; the results go to results/NAME
  measure                "regret", or "reward" for the average per round
                         (default: "regret")
  instances              number of random problems that each curve plays
                         (default: 100)
  seed                   seed of the random problems and policies (default: 0)
  checkpoints            how many times regret is recorded, or a list of rounds
                         (default: 100)
  spacing                spacing of the checkpoints, "even" or "log" (default:
                         "even")
  environment_settings   table of arguments of the environment: n_arms (default:
                         100), parameter_variance, nonzero (number of non-zero
                         features of an arm), best_score (score of the best arm,
                         to which theta is scaled), arms_change, fixed_arms,
                         theta; for "classification": data ("digits", "mnist",
                         "fashion" or the path of a CSV or Parquet file), label
                         (column of the labels), n_arms (default: 10), high,
                         low, target, intercept (whether examples get a feature
                         that is 1; default: only if their numbers need one)
  halving                table that gives up bad settings early: instances (of
                         the first rung; default: 50) and keep (one in how many
                         goes on to so many times as many; default: 3)

A list in the place of one value is a grid: settings = { scale = [0.5, 1, 2] }
plays each scale, and several lists all combinations.  Lists may be in settings,
design, environment_settings and curve_settings, and end in one table in which
the best settings are marked.  With halving, all settings of a curve play the
first instances, and in each panel the best go on until one is left, which plays
all.

`explorax run --example` prints a complete file to start from.
"""

EXAMPLE = """\
# A study of your own: explorax run mine.toml
name = "mine"                     # results go to results/mine

environment = "logistic"          # rewards of 0 and 1; also "gaussian" and "poisson"
dims = [5, 10]                    # numbers of features; one panel of the figure for each
measure = "regret"                # or "reward": the average per round
rounds = 2000
instances = 50                    # random problems that every curve plays
seed = 0
checkpoints = 100                 # how many times regret is recorded
spacing = "even"                  # or "log": more checkpoints early in the run

[environment_settings]
n_arms = 50

[[curves]]
policy = "glm_tsl"                # a name from `explorax policies`
design = "theory"                 # the exploration that the theorem asks for

[[curves]]
policy = "glm_tsl"                # without a design: the informal design

[[curves]]
policy = "glm_fpl"
label = "GLM-FPL, a = 1/4"
settings = { scale = 0.25, ridge = 0.1 }   # any argument of the policy

[[curves]]
policy = "uniform"
"""

THEORY = """\
Print what the theorems say about a problem with d features and n rounds: c1
(the width of the confidence set), and for each policy the exploration scale or
width that its theorem prescribes, c2 (the reach of its perturbation), the
smallest eigenvalue that G = sum x x' must have after the initial exploration,
and the bound on the regret without the cost of that exploration.  In Python,
`explorax.theory.describe(arms, rounds=n)` takes a matrix of arms and adds the
number of exploration rounds.
"""

REPORT = """\
Write summary.csv, claims.json, the figures and report.html of a run anew from
its records.  The run may be unfinished or still running, which the report then
mentions.
"""
